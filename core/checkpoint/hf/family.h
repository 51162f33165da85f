// The model families that both Hugging Face's transformers (github.com/huggingface/transformers) and ranklab support,
// and their module names there. A family is one file of hf_families/: a table of rules for names, the keys of its
// config.json, and what it cannot express. Thread rule: immutable.
#pragma once
#include <string>
#include <vector>

#include "core/checkpoint/hf/key.h"
#include "core/spec/model_config.h"

namespace ranklab {

class HfRefusal;

// Memory layout of a module's matrix in Hugging Face files.
enum class HfLayout {
  kSame,
  kTransposed,  // [in, out], the Conv1D of GPT-2
  // Interleaved RoPE: neighbouring rows of a head are rotated together. Their row 2i is our i, row 2i + 1 our i + n/2.
  kNeighboursPerHead,
  kNeighboursAtEnd,  // ... of one head only: the last rows of the matrix
  // Partial rotary embeddings: their heads hold the rotated rows first, in two halves, then the others. In our layout
  // each half of the head holds half of both (core/nn/rope.h).
  kRotaryFirst,
  kHalvesInTurn,  // as kTransposed; the first rows of our two halves come first, then the second ones, ...
  // Head by head (of linear attention, by head of keys): the head's rows of each of our parts; rotated rows of queries
  // and keys as in kRotaryFirst.
  kHeadsTogether,
};

enum class HfNaming { kDotted, kBare };  // "X.weight" and "X.bias", or "X" and "X_bias"

// Maps one of our modules (named as in module_table.h, without ".weight", and without "layers.*." inside a layer) to
// theirs, which together hold our fused parts (ModuleSpec::out_parts): one all of them, several one each (queries, keys
// and values; the gate and the other half of a SwiGLU) or as many as `parts` says. Where ours has a
// place for an expert ("*") and theirs has not, theirs is one tensor of all experts, its first dimension.
struct HfRule {
  std::string ours = {};
  std::vector<std::string> theirs = {};
  HfLayout layout = HfLayout::kSame;
  HfNaming naming = HfNaming::kDotted;
  std::vector<size_t> parts = {};
};

struct HfFamily {
  std::string architecture = {};               // "LlamaForCausalLM"
  std::string model_type = {};                 // "llama"
  std::string other_model_type = {};           // of files for this class that transformers itself does not know
  std::string layer_prefix = {};               // before a layer's index
  std::vector<HfRule> rules = {};              // outside layers
  std::vector<HfRule> layer_rules = {};        // the first that names a module applies to it
  std::vector<HfRule> other_layer_rules = {};  // read instead from folders that have more of these names
  ModelConfig model = {};                      // what a file of this family means before any key is read
  std::vector<HfKey> keys = {};                // of config.json, in file order
  HfJson class_defaults = {};       // of keys that a text part (text_part.h) leaves out where they are the class's
  std::string balancing_bias = {};  // of every router, in a layer: a bias that only the choice of experts sees
  std::string passed_over = {};     // what the names of tensors begin with that its class does not read
  bool (*has_form)(const ModelConfig&) = nullptr;                         // whether this model may belong to the family
  void (*check)(const HfRefusal& refusal, const ModelConfig&) = nullptr;  // ... and does, if nothing is refused
};

const std::vector<HfFamily>& hf_families();
// Throws kBadFile listing the available families.
const HfFamily& hf_family_named(const std::string& architecture, const std::string& path);

// The family that computes exactly what this model computes: the first whose form it has. Throws kInvalidArgument
// naming the setting that this family lacks. Training-only settings (dropout, balancing losses) are not considered.
const HfFamily& hf_family(const ModelConfig& config);

}  // namespace ranklab
