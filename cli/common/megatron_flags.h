// The flags of Megatron-LM's training scripts that ranklab has not by the same name and values: for whole command lines
// (`config from-megatron`), and one by one on a command line of ranklab. Torch-free.
// Thread rule: immutable.
#pragma once
#include <span>
#include <string_view>

namespace ranklab {

enum class MegatronFate {
  kSet,       // a setting here: "key=value"
  kRead,      // with others of its line together (cli/config/megatron_line.cpp); by itself: what to do instead
  kNoEffect,  // nothing that is computed or planned here depends on it
  kLeftOut,   // what is done here without it
  kRefused,   // computes something that ranklab does not; what to do instead
};

struct MegatronFlag {
  std::string_view name;
  int values = 0;  // words that belong to it; -1: up to the next flag
  MegatronFate fate = MegatronFate::kNoEffect;
  const char* text = "";
};
std::span<const MegatronFlag> megatron_flags();

// What Megatron-LM takes where a script does not say: "key=value".
std::span<const char* const> megatron_defaults();
// ... with this --optimizer.
std::span<const char* const> megatron_optimizer_defaults(std::string_view optimizer);

}  // namespace ranklab
