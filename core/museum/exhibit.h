// The museum: real bugs of distributed training, with their sources, as switches (core/base/injected_bug.h). Each is
// one file in exhibits/ and one row of exhibits.cpp. Torch-free. Thread rule: immutable.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/injected_bug.h"

namespace ranklab {

enum class BugKind : uint8_t {
  kMissingSum,       // a reduction over an axis is left out
  kWrongScale,       // values are wrong by a factor
  kWrongGroup,       // the ranks of another axis were used, or another rank's part
  kWrongPlace,       // right numbers at wrong offsets
  kStale,            // values of an earlier step are used
  kNotSynchronized,  // copies that should be equal differ
  kWrongRandom,      // random numbers repeat, or differ, where they must not
  kWrongPrecision,   // numbers are kept in too few bits
  kLostState,        // a state is not restored
  kHang,             // a rank does not take part in a collective
  kCount
};
std::string_view name(BugKind kind);

struct Exhibit {
  const char* name;  // for --inject
  InjectedBug bug;
  BugKind kind;
  const char* title;
  const char* what_happened;  // what happened, according to the source, and where the bug is in this code
  const char* citation;       // project, issue, pull request, commit or paper
  const char* url;
  // The smallest training run that shows the bug, as flags of `ranklab train`. {folder} stands for the folder that the
  // run of `before` wrote.
  const char* flags;
  const char* look_for;       // where the bug is visible in this run
  const char* guilty_module;  // a pattern that the name of the first wrong tensor's module or parameter matches
  const char* guilty_axis;    // "tp", "cp", "dp", "pp", "ep", or "none" for bugs of time and state
  const char* before = "";    // flags of a training run without the bug that is needed first
};

std::span<const Exhibit* const> exhibits();
const Exhibit* find_exhibit(std::string_view name);     // null if there is none of this name
const Exhibit& exhibit_named(const std::string& name);  // throws kInvalidArgument with the nearest name
// The bugs of a comma-separated list of names; throws like exhibit_named(). The name of a hunt, "hunt-7", is accepted
// too (hunt.h).
std::vector<InjectedBug> bugs_named(const std::string& names);

}  // namespace ranklab
