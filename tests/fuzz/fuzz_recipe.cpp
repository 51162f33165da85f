// Any text as a precision recipe: it is refused with ranklab's own error, or its written form reads back to the same
// recipe.
#include <cstdlib>
#include <string>

#include "core/base/error.h"
#include "core/precision/recipe_toml.h"

using namespace ranklab;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const PrecisionRecipe recipe = parse_recipe_toml(text, "fuzz.toml");
    if (parse_recipe_toml(recipe_toml(recipe), "written.toml") != recipe) std::abort();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInternal) std::abort();
  }
  return 0;
}
