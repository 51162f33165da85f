// The flags of Megatron-LM's training scripts that ranklab does not have with the same name and values. They are used
// for whole command lines (`config from-megatron`), and one by one for flags on a command line of ranklab. Torch-free.
// Thread rule: immutable.
#pragma once
#include <span>
#include <string_view>

namespace ranklab {

enum class MegatronFate {
  kSet,       // corresponds to a setting here; text: "key=value"
  kRead,      // read together with others (cli/config/megatron_line.cpp); text: what to use if it is given alone
  kNoEffect,  // does not affect anything that is computed or planned here
  kLeftOut,   // ignored; text: what is done here without it
  kRefused,   // computes something that ranklab does not; text: what to do instead
};

struct MegatronFlag {
  std::string_view name;
  int values = 0;  // number of words that belong to it; -1: all up to the next flag
  MegatronFate fate = MegatronFate::kNoEffect;
  const char* text = "";
};
std::span<const MegatronFlag> megatron_flags();

// What Megatron-LM uses if a script does not set it: "key=value".
std::span<const char* const> megatron_defaults();
// The same for what depends on --optimizer.
std::span<const char* const> megatron_optimizer_defaults(std::string_view optimizer);

}  // namespace ranklab
