// Any bytes as the config.json of a Hugging Face folder, as the index of its files, and as the file of a model whose
// matrices are FP8, or whose experts are MXFP4. The reader refuses with ranklab's own error; or what it read is a model
// whose config.json reads back to itself.
#include <cstdlib>
#include <string>

#include "core/base/error.h"
#include "core/checkpoint/hf/config.h"
#include "core/checkpoint/hf/import.h"
#include "tests/fuzz/scratch_folder.h"

using namespace ranklab;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

// A damaged file, or a valid one with a feature that ranklab lacks.
bool is_refusal(const Error& error) {
  return error.kind() == ErrorKind::kBadFile || error.kind() == ErrorKind::kInvalidArgument;
}

void read_config(const std::string& bytes) {
  try {
    const HfConfig config = read_hf_config(bytes, "config.json");
    require(hf_family(config.model).architecture == config.family.architecture);
    const std::string text = hf_config_json(config.model, config.family, TensorType::kF32);
    const HfConfig again = read_hf_config(text, "config.json");
    require(hf_config_json(again.model, again.family, TensorType::kF32) == text);
  } catch (const Error& error) {
    require(is_refusal(error));
  }
}

void open_folder(const ScratchFolder& folder, const char* file, const std::string& bytes) {
  folder.write(file, bytes);
  try {
    const HfModel model(folder.path());
    for (const TensorInfo& tensor : model.tensors()) model.read(tensor.name);
  } catch (const Error& error) {
    require(is_refusal(error) || error.kind() == ErrorKind::kIo);
  }
}

enum class Folder { kPlain, kIndexed, kFp8, kMxfp4 };

// A model without tensors, one whose files the input names, and two whose tensors it has.
const ScratchFolder& folder_of(Folder which) {
  static const ScratchFolder kPlain("fuzz_hf_plain"), kIndexed("fuzz_hf_indexed"), kFp8("fuzz_hf_fp8"),
      kMxfp4("fuzz_hf_mxfp4");
  const std::string empty("\2\0\0\0\0\0\0\0{}", 10);
  static const bool kReady = [&] {
    kPlain.write("model.safetensors", empty);
    kIndexed.write("a.safetensors", empty);
    kIndexed.write("config.json", R"({"architectures": ["GPT2LMHeadModel"], "vocab_size": 2, "n_embd": 2, "n_layer": 1,
                                      "n_head": 1, "n_positions": 2})");
    kFp8.write("config.json", R"({"architectures": ["LlamaForCausalLM"], "vocab_size": 2, "hidden_size": 2,
                                  "num_hidden_layers": 1, "num_attention_heads": 1, "max_position_embeddings": 2,
                                  "intermediate_size": 3, "tie_word_embeddings": true, "quantization_config":
                                  {"quant_method": "fp8", "weight_block_size": [2, 2]}})");
    kMxfp4.write("config.json", R"({"architectures": ["GptOssForCausalLM"], "vocab_size": 2, "hidden_size": 32,
                                    "num_hidden_layers": 1, "num_attention_heads": 1, "head_dim": 2,
                                    "max_position_embeddings": 2, "intermediate_size": 32, "num_local_experts": 1,
                                    "num_experts_per_tok": 1, "rope_parameters": {"rope_type": "default"},
                                    "quantization_config": {"quant_method": "mxfp4"}})");
    return true;
  }();
  if (!kReady || which == Folder::kPlain) return kPlain;
  return which == Folder::kIndexed ? kIndexed : which == Folder::kFp8 ? kFp8 : kMxfp4;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  read_config(bytes);
  open_folder(folder_of(Folder::kPlain), "config.json", bytes);
  open_folder(folder_of(Folder::kIndexed), "model.safetensors.index.json", bytes);
  open_folder(folder_of(Folder::kFp8), "model.safetensors", bytes);
  open_folder(folder_of(Folder::kMxfp4), "model.safetensors", bytes);
  return 0;
}
