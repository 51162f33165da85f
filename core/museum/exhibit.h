// The museum: bugs that distributed training really had, with their sources, as switches (core/base/injected_bug.h).
// Each is one file of exhibits/ and one row of exhibits.cpp. Torch-free. Thread rule: immutable.
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
  kWrongScale,       // values are off by a factor
  kWrongGroup,       // the ranks of another axis, or another rank's part
  kWrongPlace,       // right numbers at wrong offsets
  kStale,            // numbers of an earlier step
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
  const char* what_happened;  // the story, from what the source says, and where it is in this code
  const char* citation;       // project, issue, pull request, commit or paper
  const char* url;
  // The smallest training that shows it, as flags of `ranklab train`. {folder} stands for one that `before` has left.
  const char* flags;
  const char* look_for;       // what this run shows of it
  const char* guilty_module;  // pattern of the module or parameter of the first wrong tensor
  const char* guilty_axis;    // "tp", "cp", "dp", "pp", "ep", or "none" for bugs of time and state
  const char* before = "";    // flags of a training that comes first, without the bug
};

std::span<const Exhibit* const> exhibits();
const Exhibit* find_exhibit(std::string_view name);     // null: there is none
const Exhibit& exhibit_named(const std::string& name);  // throws kInvalidArgument with the nearest name
// The bugs of names apart by commas, in the same way; a hunt's, "hunt-7", too (hunt.h).
std::vector<InjectedBug> bugs_named(const std::string& names);

}  // namespace ranklab
