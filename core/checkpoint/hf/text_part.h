// The text model in a Hugging Face folder that also holds models for images or sound, such as those of Llama 4, Gemma 3
// and Mistral Small 3.1: the architecture ends in ForConditionalGeneration, the text model's configuration is a
// separate object, and its tensors have a prefix. Thread rule: pure functions.
#pragma once
#include <string>
#include <vector>

#include "core/checkpoint/hf/key.h"

namespace ranklab {

struct HfTextPart {
  HfJson config;           // as in the folder of a text model alone
  std::string whole = {};  // the architecture of the whole model; empty: the folder holds only a text model
};
HfTextPart hf_text_part(HfJson file);

// The names that a text model's tensor may have in such a folder.
std::vector<std::string> names_in_whole(const std::string& name);
// Whether, by its name, a tensor in such a folder belongs to the text model.
bool is_of_text_part(const std::string& name);

}  // namespace ranklab
