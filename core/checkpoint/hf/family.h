// The model families that both Hugging Face's transformers (github.com/huggingface/transformers) and ranklab support,
// and the names of their modules there. A family is one file in families/: a table of rules for names, the keys of its
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
  // Interleaved RoPE: neighbouring rows of a head are rotated together. Their row 2i is our row i, and their row 2i + 1
  // is our row i + n/2.
  kNeighboursPerHead,
  kNeighboursAtEnd,  // the same for only one head: the last rows of the matrix
  // Partial rotary embeddings: their heads contain the rotated rows first, in two halves, then the others. In our
  // layout each half of the head contains half of both (core/nn/rope.h).
  kRotaryFirst,
  kNeighboursFirst,  // the same, with the rotated rows as in kNeighboursPerHead
  // like kTransposed; in addition, rows of our two halves alternate in theirs: the first row of each, then the second
  // row of each, ...
  kHalvesInTurn,
  // Head by head (for linear attention, by key head): for each head its rows of each of our parts, with the rotated
  // rows of queries and keys as in kRotaryFirst.
  kHeadsTogether,
};

enum class HfNaming { kDotted, kBare };  // "X.weight" and "X.bias", or "X" and "X_bias"

// Maps one of our modules (named as in module_table.h, without ".weight", and inside a layer without "layers.*.") to
// their modules, which together hold our fused parts (ModuleSpec::out_parts). One module of theirs holds all parts;
// several hold one part each (queries, keys and values; the gate and the other half of a SwiGLU), or as many as `parts`
// says. If our name has a place for an expert ("*") and theirs does not, theirs is one tensor of all experts, indexed
// by its first dimension.
struct HfRule {
  std::string ours = {};
  std::vector<std::string> theirs = {};
  HfLayout layout = HfLayout::kSame;
  HfNaming naming = HfNaming::kDotted;
  std::vector<size_t> parts = {};
};

using HfRules = std::vector<HfRule>;

HfRules llama_model_rules();  // modules outside layers, under Llama's names

struct HfFamily {
  std::string architecture = {};      // "LlamaForCausalLM"
  std::string model_type = {};        // "llama"
  std::string other_model_type = {};  // model type in files for this class that transformers itself does not know
  std::string layer_prefix = "model.layers.";  // before a layer's index
  HfRules rules = llama_model_rules();         // for modules outside layers
  HfRules layer_rules = {};                    // the first rule that names a module applies to it
  HfRules other_layer_rules = {};              // used instead for folders that have more tensors under their names
  ModelConfig model = {};                      // the model that a file of this family describes before any key is read
  std::vector<HfKey> keys = {};                // the keys of config.json, in file order
  // default values of the class, for keys that a text part (text_part.h) omits when they have these values
  HfJson class_defaults = {};
  std::string balancing_bias = {};     // name, in a layer, of a router's bias that affects only the choice of experts
  bool balancing_bias_is_row = false;  // [1, experts] there, not [experts]
  std::string passed_over = {};        // prefix of the names of tensors that the class does not read
  bool (*has_form)(const ModelConfig&) = nullptr;                         // whether this model may belong to the family
  void (*check)(const HfRefusal& refusal, const ModelConfig&) = nullptr;  // ... and whether it does: refuses if not
};

const std::vector<HfFamily>& hf_families();
// Throws kBadFile listing the available families.
const HfFamily& hf_family_named(const std::string& architecture, const std::string& path);

// The family that computes exactly what this model computes; the first one whose form the model has. Throws
// kInvalidArgument naming a setting that this family lacks. Settings that only matter in training (dropout, balancing
// losses) are ignored.
const HfFamily& hf_family(const ModelConfig& config);

}  // namespace ranklab
