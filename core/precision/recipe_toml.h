// A precision recipe as TOML (https://toml.io, 1.0): every field of recipe.h by its name, one table per tensor.
// `base = "deepseek_v3"` starts from a built-in recipe, from which keys that are absent are taken. recipe_toml() and
// parse_recipe_toml() round-trip. Torch-free. Thread rule: pure functions.
#pragma once
#include <string>

#include "core/precision/recipe.h"

namespace ranklab {

// Throws kBadFile for text that is not TOML, and kInvalidArgument for an unknown key (with the nearest key), a value of
// the wrong type, or incompatible fields; all errors name the file, and the line if there is one.
PrecisionRecipe parse_recipe_toml(const std::string& text, const std::string& file);
// Throws kIo if the file cannot be read. A recipe without a name is named after its file.
PrecisionRecipe read_recipe_toml(const std::string& path);
// A built-in recipe by name, or a file if the text ends in .toml or contains a slash.
PrecisionRecipe load_precision_recipe(const std::string& name_or_path);

std::string recipe_toml(const PrecisionRecipe& recipe);

}  // namespace ranklab
