// A precision recipe as TOML (https://toml.io, 1.0): every field of recipe.h by its name, a table for each tensor.
// `base = "deepseek_v3"` starts from a built-in recipe, and what the file does not say stays as it is there. The
// written form reads back to the same recipe. Torch-free. Thread rule: pure functions.
#pragma once
#include <string>

#include "core/precision/recipe.h"

namespace ranklab {

// Throws kBadFile for text that is not TOML, kInvalidArgument for an unknown key (with the nearest), a value of the
// wrong type, a field that does not go with another; all name the file, and the line where there is one.
PrecisionRecipe parse_recipe_toml(const std::string& text, const std::string& file);
// Throws kInvalidArgument when the file cannot be read. A recipe without a name has the file's.
PrecisionRecipe read_recipe_toml(const std::string& path);
// A built-in recipe by name, or a file: what ends in .toml or has a slash.
PrecisionRecipe load_precision_recipe(const std::string& name_or_path);

std::string recipe_toml(const PrecisionRecipe& recipe);

}  // namespace ranklab
