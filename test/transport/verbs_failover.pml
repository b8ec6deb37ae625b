/* The failover and failback of a verbs connection (transport/verbs/wire.h), for spin: two ends, PATHS paths between them, MESSAGES messages
 * of PIECES pieces from end 0 to end 1, a ring of RING credits from end 1 to end 0, FAILURES failures, and at most GENERATIONS queue pairs
 * for a path at each end, one after the other. Each choice is free: which path takes what, when anything arrives, is seen or fails.
 *
 *   a device of the sender       network        a device of the receiver      software of the receiver
 *   post ----------------------> wire --------> writes memory, and ---------> cq, seen later, path by path in any order
 *   known to be there <--------------------------- acknowledges, now or never
 *
 * Packets of a queue pair in the error state may arrive until the receiver has moved its own into that state. An acknowledgement that comes
 * late is as one that comes at once, since nothing waits for it but the end. Claimed: what the assertions say, and that, whatever happens,
 * all messages are delivered and known to be, or an end has no path left. (That something happens for ever was searched for once, with
 * non-progress cycles: mail is written only when its end knows more.) MUTANT removes one rule; then a claim fails:
 * verbs_failover.py. */
#ifndef PATHS
#define PATHS 2
#endif
#ifndef MESSAGES
#define MESSAGES 2
#endif
#ifndef PIECES
#define PIECES 2
#endif
#ifndef RING
#define RING 1
#endif
#ifndef FAILURES
#define FAILURES 2
#endif
#ifndef GENERATIONS
#define GENERATIONS 2
#endif
#ifndef MUTANT
#define MUTANT 0
#endif
#define ANSWERS_BEFORE_DRAINED 1   /* mail is written while completions of a failed path are not seen */
#define ASKS_NOT 2                 /* pieces of a failed path are sent again at once */
#define SETS_DIFFER 3              /* mail is acted upon though it knows of other failures */
#define LEAVES_PAIR 4              /* a queue pair that has failed, as the peer says, still takes what comes */
#define NO_PROBE 5                 /* a path is used as soon as it is joined here */
#define ANY_MAIL 6                 /* older mail, seen later, replaces newer */
#define ALL_CREDITS 7              /* every credit is written again, whether it is there or not */
#define NO_ANSWER 8                /* who hears of a failure from the peer does not say that he has */
#define IGNORES_SET 9              /* what the mail says to be there is sent again */
#define LOSES_QUIETLY 10           /* a failure that comes while mail is on that path is not said anew */

#define ALL_PIECES (MESSAGES * PIECES)
#ifndef CAPACITY
#ifndef CAPACITY
#define CAPACITY 3
#endif
#endif

mtype = { DATA, CREDIT, MAIL, PROBE };
/* Of one path at one end. */
mtype = { ALIVE, FAILED, OUT, OFFERED, JOINED, PROBING };
/* Of a piece or a credit; else the path that it is under way on. */
#define UNSENT 100
#define LOST 101                   /* sent on a path that has failed since: the peer may have it */
#define THERE 102
#define NEWS 103                   /* mail has come */

mtype state[2 * PATHS] = ALIVE;    /* by end * PATHS + path; so are the next ones */
chan wire[2 * PATHS] = [CAPACITY] of { mtype, int };  /* what this end has sent */
chan cq[2 * PATHS] = [CAPACITY] of { byte };          /* what has come here and was not seen, by piece, or NEWS */
int mailbox[2 * PATHS];            /* here, of the peer */
int newest[2 * PATHS];             /* mail in our memory, which the device may read late, while any is on the wire */
bool doomed[2 * PATHS];            /* something was sent that will never be acknowledged */

int failed[2];                    /* generations, packed as in mail */
int said[2];                       /* the peer's last mail */
bool unsaid[2], heard[2];
byte failures = FAILURES;
bool broken;                       /* an end has no path left */

byte piece[6] = UNSENT;   /* at end 0 */
byte seen;                         /* credits that end 0 has found in its ring, in order */
byte ring[RING];                   /* at end 0: sequences, from 1 */
byte credit[3] = UNSENT;    /* at end 1 */
int landed, counted;               /* at end 1, as bits: pieces in memory, and those that were seen to be */

/* Mail: per path the generation that has failed (2 bits), whether the next one was made and joined (a bit each), and what is there. In gyre
 * it has a number; here the larger one is the later, since each says more than the last. */
#define FAILED_OF(m, p) (((m) >> (20 + 2 * (p))) & 3)
#define MADE(m, p) (((m) >> (16 + (p))) & 1)
#define HAS_JOINED(m, p) (((m) >> (12 + (p))) & 1)
#define IS_THERE(m, i) (((m) >> (i)) & 1)
#define ALL_FAILED(m) ((m) >> 20)
#define WITHOUT_THERE(m) ((m) >> 12)

#define X(e, p) ((e) * PATHS + (p))
#define USABLE(x) (state[x] == JOINED || state[x] == PROBING || state[x] == ALIVE)
#define GONE(x) (state[x] == FAILED || state[x] == OUT)
#define PIECES_OF(s) (((1 << PIECES) - 1) << ((s) * PIECES))
#define COMPLETE(s) ((counted & PIECES_OF(s)) == PIECES_OF(s))

hidden byte i, q, r;
hidden int m, value;
hidden mtype kind;

inline post(x, y, what, content) {
  if
  :: GONE(y) -> doomed[x] = true
  :: else -> wire[x] ! what, content
  fi
}

inline lose(e, p) {
  failed[e] = failed[e] + (1 << (20 + 2 * p));
  unsaid[e] = MUTANT != LOSES_QUIETLY || newest[X(e, p)] == 0;
  if
  :: state[X(e, p)] != OUT -> state[X(e, p)] = FAILED
  :: else
  fi;
  doomed[X(e, p)] = false;
  if
  :: len(wire[X(1 - e, p)]) > 0 -> doomed[X(1 - e, p)] = true
  :: else
  fi;
  do
  :: len(wire[X(1 - e, p)]) > 0 && MUTANT != LEAVES_PAIR -> wire[X(1 - e, p)] ? kind, value
  :: else -> break
  od;
  newest[X(1 - e, p)] = 0;
  broken = true;
  for (q : 0 .. PATHS - 1) {
    if
    :: state[X(e, q)] == ALIVE -> broken = false
    :: else
    fi
  };
  q = 0
}

/* What was sent on this path, all of whose completions are seen, has arrived or has not: the peer knows. */
inline seen_out(e, p) {
  state[X(e, p)] = OUT;
  if
  :: e == 0 ->
     for (i : 0 .. ALL_PIECES - 1) {
       if
       :: piece[i] == p -> piece[i] = (MUTANT == ASKS_NOT -> UNSENT : LOST)
       :: else
       fi
     }
  :: e == 1 ->
     for (i : 0 .. MESSAGES - 1) {
       if
       :: credit[i] == p -> credit[i] = LOST
       :: else
       fi
     }
  fi
}

inline write_mail(e, p) {
  m = failed[e];
  for (i : 0 .. PATHS - 1) {
    if
    :: GONE(X(e, i))
    :: else -> m = m | (1 << (16 + i))
    fi;
    if
    :: USABLE(X(e, i)) -> m = m | (1 << (12 + i))
    :: else
    fi
  }
  if
  :: e == 1 -> m = m | counted
  :: else ->
     for (i : 0 .. MESSAGES - 1) {
       if
       :: seen > i || ring[i % RING] == i + 1 -> m = m | (1 << i)
       :: else
       fi
     }
  fi;
  if
  :: GONE(X(1 - e, p))
  :: else -> newest[X(e, p)] = m
  fi;
  post(X(e, p), X(1 - e, p), MAIL, m);
  unsaid[e] = false
}

inline take_mail(e, p) {
  m = mailbox[X(e, p)];
  if
  :: MUTANT == ANY_MAIL || WITHOUT_THERE(m) > WITHOUT_THERE(said[e]) ->
     said[e] = m;
     heard[e] = true;
     for (r : 0 .. PATHS - 1) {
       if
       :: FAILED_OF(m, r) > FAILED_OF(failed[e], r) ->
          assert(FAILED_OF(m, r) == FAILED_OF(failed[e], r) + 1);
          lose(e, r);
          if
          :: MUTANT == NO_ANSWER -> unsaid[e] = false
          :: else
          fi
       :: else
       fi
     }
  :: else
  fi
}

inline take_up(e) {
  heard[e] = false;
  if
  :: e == 0 ->
     for (i : 0 .. ALL_PIECES - 1) {
       if
       :: piece[i] == LOST ->
          piece[i] = (IS_THERE(said[0], i) && MUTANT != IGNORES_SET -> THERE : UNSENT)
       :: else
       fi
     }
  :: else ->
     for (i : 0 .. MESSAGES - 1) {
       if
       :: MUTANT == ALL_CREDITS && credit[i] != UNSENT && !COMPLETE(i) -> credit[i] = UNSENT
       :: MUTANT != ALL_CREDITS && credit[i] == LOST -> credit[i] = (IS_THERE(said[1], i) -> THERE : UNSENT)
       :: else
       fi
     }
  fi;
  said[e] = WITHOUT_THERE(said[e]) << 12
}

#define IS_OUT(e, p) ((p) >= PATHS || state[(e) * PATHS + (p) % PATHS] != FAILED)
#define ALL_OUT(e) (IS_OUT(e, 0) && IS_OUT(e, 1) && IS_OUT(e, 2))
#define WAITS(i) ((i) < seen * PIECES && piece[i] == UNSENT)
#define FIRST_PIECE (WAITS(0) -> 0 : (WAITS(1) -> 1 : (WAITS(2) -> 2 : (WAITS(3) -> 3 : (WAITS(4) -> 4 : (WAITS(5) -> 5 : ALL_PIECES))))))
#define IS_POSTED(s) ((s) < MESSAGES && ((s) < RING || COMPLETE((s) - RING)))
#define CREDIT_WAITS(s) (IS_POSTED(s) && credit[s] == UNSENT)
#define FIRST_CREDIT (CREDIT_WAITS(0) -> 0 : (CREDIT_WAITS(1) -> 1 : (CREDIT_WAITS(2) -> 2 : MESSAGES)))
#define IS_ALIVE(e, p) ((p) < PATHS && state[(e) * PATHS + (p) % PATHS] == ALIVE)
#define SOME_PATH(e) (IS_ALIVE(e, 0) -> 0 : (IS_ALIVE(e, 1) -> 1 : 2))
#define PEER_SAW_OUT(e, p) (FAILED_OF(said[e], p) == FAILED_OF(failed[e], p) && FAILED_OF(failed[e], p) < GENERATIONS)
#define KNOWS_ALIKE(e) (ALL_FAILED(said[e]) == ALL_FAILED(failed[e]))

inline arrive(e, p) {
  wire[X(1 - e, p)] ? kind, m;
  if
  :: kind == DATA ->
     assert(!COMPLETE(m / PIECES));              /* its buffer may be in use again */
     assert((landed >> m & 1) == 0);
     landed = landed | (1 << m);
     cq[X(e, p)] ! m
  :: kind == CREDIT -> ring[m % RING] = m + 1
  :: kind == MAIL ->
     mailbox[X(e, p)] = (overwritten -> newest[X(1 - e, p)] : m);
     cq[X(e, p)] ! NEWS
  :: else
  fi;
  if
  :: !USABLE(X(1 - e, p))
  :: else ->
     if
     :: lost -> failures--; doomed[X(1 - e, p)] = true
     :: !lost && kind == DATA -> piece[m] = THERE
     :: !lost && kind == PROBE -> state[X(1 - e, p)] = ALIVE
     :: else
     fi
  fi;
  if
  :: wire[X(1 - e, p)] ?? [MAIL, _]
  :: !(wire[X(1 - e, p)] ?? [MAIL, _]) -> newest[X(1 - e, p)] = 0
  fi
}

inline see(e, p) {
  cq[X(e, p)] ? i;
  if
  :: i < ALL_PIECES ->
     assert((counted >> i & 1) == 0);
     counted = counted | (1 << i)
  :: i == NEWS && !torn -> take_mail(e, p)
  :: else
  fi;
  if
  :: cq[X(e, p)] ?? [NEWS]
  :: !(cq[X(e, p)] ?? [NEWS]) -> mailbox[X(e, p)] = 0
  fi
}

/* What the software does by itself when there is news. */
inline react(e) {
  for (r : 0 .. PATHS - 1) {
    if
    :: state[X(e, r)] == FAILED && len(cq[X(e, r)]) == 0 -> seen_out(e, r)
    :: else
    fi;
    if
    :: (state[X(e, r)] == OUT || state[X(e, r)] == OFFERED) && MADE(said[e], r) && PEER_SAW_OUT(e, r) ->
       state[X(e, r)] = (MUTANT == NO_PROBE -> ALIVE : JOINED);
       unsaid[e] = true
    :: else
    fi;
    if
    :: state[X(e, r)] == JOINED && HAS_JOINED(said[e], r) && PEER_SAW_OUT(e, r) ->
       state[X(e, r)] = PROBING;
       post(X(e, r), X(1 - e, r), PROBE, 0)
    :: else
    fi
  }
  r = SOME_PATH(e);
  if
  :: !broken && unsaid[e] && len(wire[X(e, r)]) < CAPACITY && (ALL_OUT(e) || MUTANT == ANSWERS_BEFORE_DRAINED) -> write_mail(e, r)
  :: else
  fi;
  if
  :: heard[e] && !unsaid[e] && (KNOWS_ALIKE(e) || MUTANT == SETS_DIFFER) -> take_up(e)
  :: else
  fi;
  if
  :: e == 0 && seen < MESSAGES && ring[seen % RING] == seen + 1 -> seen++
  :: else
  fi;
  r = 0
}

/* Data goes where the peer takes it, or has: a packet that comes before waits for retries, and fails the path. */
inline check_joined(e, p) {
  assert(state[X(1 - e, p)] != OFFERED && (state[X(1 - e, p)] != OUT || FAILED_OF(failed[1 - e], p) > FAILED_OF(failed[e], p)))
}

proctype Path(bit e; byte p) {
  bool overwritten, lost, torn;
end:
  do
  /* Devices and the network. */
  :: atomic {
       !broken && nempty(wire[X(1 - e, p)]) && (USABLE(X(e, p)) || MUTANT == LEAVES_PAIR) &&
         nfull(cq[X(e, p)]) ->
       if
       :: overwritten = false
       :: newest[X(1 - e, p)] != 0 -> overwritten = true   /* by a later mail, before the device read it */
       fi;
       if
       :: lost = false
       :: failures > 0 && USABLE(X(1 - e, p)) && !doomed[X(1 - e, p)] && !(wire[X(1 - e, p)] ? [CREDIT, _]) -> lost = true
       fi;
       d_step { arrive(e, p); overwritten = false; lost = false; react(0); react(1) }
     }
  :: d_step { !broken && failures > 0 && !GONE(X(e, p)) -> failures--; lose(e, p); react(e) }
  :: d_step { !broken && doomed[X(e, p)] && !GONE(X(e, p)) -> lose(e, p); react(e) }
  /* Completions. */
  :: atomic {
       !broken && nempty(cq[X(e, p)]) ->
       if
       :: torn = false
       :: wire[X(1 - e, p)] ?? [MAIL, _] -> torn = true    /* the next mail is being written: its checksum is wrong */
       fi;
       d_step { see(e, p); torn = false; react(e) }
     }
  /* A new queue pair, after a while. */
  :: d_step { !broken && state[X(e, p)] == OUT && PEER_SAW_OUT(e, p) -> state[X(e, p)] = OFFERED; unsaid[e] = true; react(e) }
  /* Data and credits. */
  :: d_step {
       !broken && e == 0 && state[X(e, p)] == ALIVE && nfull(wire[X(e, p)]) && FIRST_PIECE < ALL_PIECES ->
       check_joined(e, p);
       i = FIRST_PIECE;
       piece[i] = p;
       assert(ring[(i / PIECES) % RING] == i / PIECES + 1);   /* where to, is read there */
       post(X(e, p), X(1 - e, p), DATA, i)
     }
  :: d_step {
       !broken && e == 1 && state[X(e, p)] == ALIVE && nfull(wire[X(e, p)]) && FIRST_CREDIT < MESSAGES ->
       check_joined(e, p);
       i = FIRST_CREDIT;
       credit[i] = p;
       post(X(e, p), X(1 - e, p), CREDIT, i)
     }
  od
}

#define ALL_THERE(i) ((i) >= ALL_PIECES || piece[i] == THERE)
#define FINISHED \
  (counted == (1 << ALL_PIECES) - 1 && ALL_THERE(0) && ALL_THERE(1) && ALL_THERE(2) && ALL_THERE(3) && ALL_THERE(4) && ALL_THERE(5))

init {
  byte p;
  atomic {
    for (p : 0 .. PATHS - 1) {
      run Path(0, p);
      run Path(1, p)
    }
    p = 0
  }
  timeout ->
  assert(broken || FINISHED);
  assert(broken || (failed[0] == failed[1] && !unsaid[0] && !unsaid[1]))
}
