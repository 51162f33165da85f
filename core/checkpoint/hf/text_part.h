// The text model of a Hugging Face folder that holds one beside models of pictures or sound, as Llama 4, Gemma 3 and
// Mistral Small 3.1 are published: an architecture that ends in ForConditionalGeneration, with the text model's
// configuration as an object of its own and its tensors under a prefix. Thread rule: pure functions.
#pragma once
#include <string>
#include <vector>

#include "core/checkpoint/hf/key.h"

namespace ranklab {

struct HfTextPart {
  HfJson config;           // as a text model's folder would have it
  std::string whole = {};  // the architecture of all of it; empty: the folder is a text model's
};
HfTextPart hf_text_part(HfJson file);

// What a text model's tensor may be called there.
std::vector<std::string> names_in_whole(const std::string& name);
// Whether a tensor of such a folder is the text model's by its name.
bool is_of_text_part(const std::string& name);

}  // namespace ranklab
