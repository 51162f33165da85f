// The families of models that Hugging Face's transformers (github.com/huggingface/transformers) and ranklab both have,
// and the names their modules bear there. A family is one file of hf_families/: a table of rules for names, the keys of
// its config.json, and what it cannot express. Thread rule: immutable.
#pragma once
#include <string>
#include <vector>

#include "core/checkpoint/hf_key.h"
#include "core/spec/model_config.h"

namespace ranklab {

class HfRefusal;

// How a module's matrix stands in their files.
enum class HfLayout {
  kSame,
  kTransposed,  // [in, out], the Conv1D of GPT-2
  // Rows of a head that carry position are neighbours that turn together: row 2i is our i, row 2i + 1 our i + n/2.
  kNeighboursPerHead,
  kNeighboursAtEnd,  // ... of one head: the last rows of the matrix
  // Of a head that carries position in part: the rows that turn come first, in two halves, then the others. Here each
  // of its halves holds half of both (core/nn/rope.h).
  kTurnedFirst,
  // One head behind the other, each as its query, its key and its value (as many of each); of what turns as above.
  kHeadsTogether,
};

// One module of ours (as in module_table.h, without ".weight", of a layer without "layers.*.") and theirs: three names
// are queries, keys and values, two the gate and the other half of a SwiGLU.
struct HfRule {
  std::string ours = {};
  std::vector<std::string> theirs = {};
  HfLayout layout = HfLayout::kSame;
};

struct HfFamily {
  std::string architecture = {};                   // "LlamaForCausalLM"
  std::string model_type = {};                     // "llama"
  std::string layer_prefix = {};                   // before a layer's number
  std::vector<HfRule> rules = {};                  // outside layers
  std::vector<HfRule> layer_rules = {};            // the first that names a module is its
  ModelConfig model = {};                          // what a file of this family means before its first key
  std::vector<HfKey> keys = {};                    // of config.json, in the order of the file
  bool (*has_form)(const ModelConfig&) = nullptr;  // whether this model may be one of the family
  void (*check)(const HfRefusal& refusal, const ModelConfig&) = nullptr;  // ... and is, if nothing is refused
};

const std::vector<HfFamily>& hf_families();
// Throws kBadFile listing the families there are.
const HfFamily& hf_family_named(const std::string& architecture, const std::string& path);

// The family that computes exactly what this model computes: the first of its form. Throws kInvalidArgument naming the
// setting that this family has not. What only training uses (dropout, losses of balancing) is not asked.
const HfFamily& hf_family(const ModelConfig& config);

}  // namespace ranklab
