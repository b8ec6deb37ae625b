// Are all accesses to memory ordered? The steps of a program are; those of two strands of a rank are only where messages make them so,
// and what a transport does to memory in its own time is ordered even less. This is the memory model of all three modes:
//
//   read, write by a step        at that step
//   buffered, send               read at the step, into a slot
//   posted or mapped, send       the transport reads from the step on, until the receiver's step that takes the message. The strand
//   of what lies in memory       that sent waits for the transport before it writes there again (run.h, overwritable); another strand
//                                of the rank waits for nothing, and so must have heard from the receiver after that step
//   posted, receive that lands   the transport writes from when the message was sent and its receive announced, until the receiver's
//   (announce.h)                 step; not announced before the last earlier access of this strand, and in the order of steps
//   mapped, receive              at the step, from the sender's memory
//
// Two accesses to the same memory, one of them a write, by different strands, must be ordered: the end of one before the beginning of the
// other, by program order and messages alone. What credits happen to order is not counted: a run may have more of them.
#pragma once
#include <string>

#include "schedule/verify.h"
#include "schedule/wiring.h"

namespace gyre::schedule {

/// Two accesses that are not ordered, in words; empty: there are none, among the steps that run if the schedule gets stuck.
/// Slices need no question of their own: they touch memory of their own, and one slice is ordered as all are.
std::string unordered(const Schedule&, const Wiring&, Mode, bool in_place);

}  // namespace gyre::schedule
