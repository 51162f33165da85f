#include "core/precision/recipe_toml.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <sstream>

#include "core/base/error.h"
#include "core/base/files/input_file.h"
#include "core/base/named_rows.h"
#include "core/base/text.h"
#include "core/base/toml/toml_file.h"
#include "core/precision/recipe_check.h"

namespace ranklab {
namespace {

// One table of the file. Records which keys were read, so that a misspelt one is an error.
class Reader {
 public:
  Reader(const toml::table& table, std::string file, std::string prefix)
      : table_(table), file_(std::move(file)), prefix_(std::move(prefix)) {}

  bool has(const std::string& key) const { return table_.contains(key); }
  bool empty() const { return table_.empty(); }
  std::string place(const std::string& key) const {
    const toml::node* node = table_.get(key);
    return node == nullptr ? file_ : file_ + ":" + std::to_string(node->source().begin.line);
  }

  void text(const std::string& key, std::string& value) {
    if (const toml::node* node = find(key)) value = of_type<std::string>(key, *node, "a string in quotes");
  }
  void flag(const std::string& key, bool& value) {
    if (const toml::node* node = find(key)) value = of_type<bool>(key, *node, "true or false");
  }
  void number(const std::string& key, int64_t& value) {
    if (const toml::node* node = find(key)) value = of_type<int64_t>(key, *node, "a whole number");
  }
  void texts(const std::string& key, std::vector<std::string>& value) {
    const toml::node* node = find(key);
    if (node == nullptr) return;
    const toml::array* array = node->as_array();
    if (array == nullptr) refuse(key, *node, "a list of texts");
    value.clear();
    for (const toml::node& one : *array) {
      if (!one.is_string()) refuse(key, one, "a list of texts");
      value.push_back(*one.value<std::string>());
    }
  }
  void dtype(const std::string& key, DType& value) {
    choice(key, value, std::array{DType::kFloat32, DType::kBFloat16, DType::kFloat16});
  }
  template <typename T, size_t kCount>
  void choice(const std::string& key, T& value, const std::array<T, kCount>& values) {
    const toml::node* node = find(key);
    if (node == nullptr) return;
    const std::string got = of_type<std::string>(key, *node, "a string in quotes");
    std::vector<std::string> names;
    for (const T one : values) {
      names.emplace_back(name(one));
      if (names.back() != got) continue;
      value = one;
      return;
    }
    refuse_choice(key, got, names);
  }
  void format(const std::string& key, const NumberFormat*& value) {
    const toml::node* node = find(key);
    if (node == nullptr) return;
    const std::string got = of_type<std::string>(key, *node, "a string in quotes");
    std::vector<std::string> names = {"none"};
    value = nullptr;
    if (got == names[0]) return;
    for (const NumberFormat& one : number_formats()) {
      if (one.special == NumberFormat::Special::kUnsignedNan) continue;  // for scales only
      if (one.name == got) value = &one;
      names.emplace_back(one.name);
    }
    if (value == nullptr) refuse_choice(key, got, names);
  }
  std::optional<Reader> table(const std::string& key) {
    const toml::node* node = find(key);
    if (node == nullptr) return std::nullopt;
    if (!node->is_table()) refuse(key, *node, "a table: [" + key + "]");
    return Reader(*node->as_table(), file_, key + ".");
  }

  void reject_unknown() const {
    for (const auto& [key, node] : table_) {
      const std::string name(key.str());
      if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
      throw Error(ErrorKind::kInvalidArgument, {.where = place(name),
                                                .what = "unknown key of a recipe",
                                                .got = quote(prefix_ + name),
                                                .want = "one of " + join(known_, ", "),
                                                .fix = did_you_mean(name, known_, "remove it")});
    }
  }

 private:
  const toml::node* find(const std::string& key) {
    known_.push_back(key);
    return table_.get(key);
  }
  template <typename T>
  T of_type(const std::string& key, const toml::node& node, const std::string& want) const {
    if (!node.is<T>()) refuse(key, node, want);
    return *node.value<T>();
  }
  [[noreturn]] void refuse(const std::string& key, const toml::node& node, const std::string& want) const {
    std::ostringstream type;
    type << node.type();
    throw Error(ErrorKind::kInvalidArgument,
                {.where = place(key),
                 .what = prefix_ + key + " has the wrong type",
                 .got = "a value of type " + type.str(),
                 .want = want,
                 .fix = "correct it; ranklab precision recipes NAME --toml shows the form"});
  }
  [[noreturn]] void refuse_choice(const std::string& key, const std::string& got,
                                  const std::vector<std::string>& names) const {
    throw unknown_name(got, names,
                       {.where = place(key),
                        .what = prefix_ + key + " cannot have this value",
                        .fix = "remove it, or correct its name"});
  }

  const toml::table& table_;
  std::string file_, prefix_;
  std::vector<std::string> known_;
};

void read_tensor(Reader& root, const std::string& role, TensorPrecision& tensor) {
  std::optional<Reader> reader = root.table(role);
  if (!reader) return;
  reader->format("format", tensor.format);
  reader->choice("granularity", tensor.granularity,
                 std::array{Granularity::kTensor, Granularity::kRow, Granularity::kTile, Granularity::kBlock});
  const bool blocks = tensor.granularity == Granularity::kTile || tensor.granularity == Granularity::kBlock;
  if (!blocks) tensor.block = 0;
  reader->number("block", tensor.block);
  reader->choice("scale", tensor.scale,
                 std::array{ScaleRule::kFp32, ScaleRule::kPowerOfTwo, ScaleRule::kE8M0, ScaleRule::kE8M0Up,
                            ScaleRule::kE4M3, ScaleRule::kDelayedFp32});
  reader->choice("rounding", tensor.rounding, std::array{Rounding::kNearest, Rounding::kStochastic});
  reader->reject_unknown();
  if (tensor.quantized()) return;
  RANKLAB_CHECK(reader->has("format"), ErrorKind::kInvalidArgument, .where = root.place(role),
                .what = "[" + role + "] has no format", .got = "the other keys alone",
                .want = "format = \"e4m3\", \"e5m2\", \"e2m1\" or \"none\"",
                .fix = "add one; ranklab precision recipes NAME --toml shows the form");
  tensor = {};
}

void read_recipe(Reader& root, PrecisionRecipe& recipe) {
  root.text("name", recipe.name);
  root.text("summary", recipe.summary);
  root.text("source", recipe.source);
  root.dtype("compute", recipe.compute);
  root.dtype("main_params", recipe.main_params);
  root.dtype("main_grads", recipe.main_grads);
  root.dtype("exp_avg", recipe.exp_avg);
  root.dtype("exp_avg_sq", recipe.exp_avg_sq);
  root.texts("high_precision", recipe.high_precision);
  root.flag("requantize_activation", recipe.linear.requantize_activation);
  root.flag("hadamard", recipe.linear.hadamard);
  root.choice("sum", recipe.linear.sum,
              std::array{SumPrecision::kFp32, SumPrecision::kHopper, SumPrecision::kHopperPromoted});
  read_tensor(root, "activation", recipe.linear.activation);
  read_tensor(root, "weight", recipe.linear.weight);
  read_tensor(root, "gradient", recipe.linear.gradient);
  read_tensor(root, "dispatch", recipe.dispatch);
  read_tensor(root, "gather", recipe.gather);
}

}  // namespace

PrecisionRecipe parse_recipe_toml(const std::string& text, const std::string& file) {
  const toml::table table = parse_toml(text, file, "ranklab precision recipes NAME --toml shows how a recipe looks");
  RANKLAB_CHECK(!table.empty(), ErrorKind::kInvalidArgument, .where = file, .what = "the recipe is empty",
                .got = "no key", .want = "what differs from fp32, or base = NAME",
                .fix = "ranklab precision recipes NAME --toml shows how a recipe looks");
  Reader root(table, file, "");
  PrecisionRecipe recipe;
  std::string base;
  root.text("base", base);
  if (!base.empty()) {
    try {
      recipe = find_precision_recipe(base);
    } catch (const Error& error) {
      ErrorText told = error.text();
      told.where = root.place("base");
      throw Error(error.kind(), told);
    }
  }
  recipe.name = std::filesystem::path(file).stem().string();
  read_recipe(root, recipe);
  root.reject_unknown();
  check_recipe(recipe, file);
  return recipe;
}

PrecisionRecipe read_recipe_toml(const std::string& path) {
  constexpr size_t kLimitBytes = 1 << 20;
  return parse_recipe_toml(read_whole_file(path, kLimitBytes,
                                           {.where = "--precision-recipe",
                                            .fix = "ranklab precision recipes NAME --toml > FILE writes one"}),
                           path);
}

PrecisionRecipe load_precision_recipe(const std::string& name_or_path) {
  const bool file = name_or_path.ends_with(".toml") || name_or_path.find('/') != std::string::npos;
  return file ? read_recipe_toml(name_or_path) : find_precision_recipe(name_or_path);
}

}  // namespace ranklab
