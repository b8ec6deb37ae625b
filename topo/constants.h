// Measured constants are data with their origin: constants.json, which is compiled in, or a file of the same form. Every error names the
// file, the key and the value. A file's "nccl" is not looked at: it is the tuner plugin's (plugin/tuner_profile.h).
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/processor.h"
#include "base/result.h"
#include "topo/cost.h"

namespace gyre::topo {

/// Where measured constants hold, and for which version of gyre's algorithms.
struct MadeFor {
  Processors processors;
  std::string version;  ///< profile_version of who made them

  /// Why they do not hold here; empty: they do.
  std::string foreign(const Processors& here, std::string_view version) const;
};

struct Constants {
  std::map<std::string, Costs, std::less<>> machines;
  std::map<std::string, std::string, std::less<>> origins;  ///< of a link's or a rank's constants: what, where, when
  std::optional<MadeFor> made_for;                          ///< none: they hold anywhere

  /// Error: invalid_argument with the nearest name.
  Result<Costs> machine(std::string_view name) const;
};

/// `source` is the name of the text in errors.
Result<Constants> parse_constants(std::string_view text, std::string_view source);
/// Those compiled in.
Result<Constants> default_constants();
/// The file's text, or that of those compiled in.
Result<std::string> constants_text(const std::string& file);
/// The same, kept for all that goes by it, whatever becomes of the file.
struct ConstantsText {
  std::string file, text;

  /// Equal for equal texts, on every machine.
  std::string digest() const;
};
Result<ConstantsText> read_constants(const std::string& file);
/// The file's, or where none is named those compiled in.
Result<Constants> constants_of(const std::string& file);
/// The same for what runs here. Error: those of another machine, or of another version of gyre.
Result<Constants> constants_for_here(const ConstantsText&);
/// A machine of constants_for_here(), by the name of the file. One that the file lacks, as those do that were made before there was such a
/// machine, has the constants compiled in, which a line at info level says; one without bounds of direct forms has those compiled in.
Result<Costs> costs_here(const Constants&, const std::string& file, std::string_view machine);

}  // namespace gyre::topo
