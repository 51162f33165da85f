#include "core/config/linear_modules.h"

#include "core/base/error.h"

namespace ranklab {
namespace {

constexpr size_t kSuffix = sizeof(".weight") - 1;

std::string with_number(std::string name, int64_t number) {
  const size_t star = name.find('*');
  if (star != std::string::npos) name.replace(star, 1, std::to_string(number));
  return name;
}

// MTP modules share the head's weight.
bool has_weight(const ModuleRow& row) { return row.parameter.ends_with(".weight") && !(row.tied && row.mtp); }

void check_count(const std::vector<ModuleRow>& rows) {
  constexpr int64_t kMost = 1 << 18;
  int64_t count = 0;
  for (const ModuleRow& row : rows) count += has_weight(row) ? row.copies() : 0;
  RANKLAB_CHECK(count <= kMost, ErrorKind::kInvalidArgument, .where = "precision",
                .what = "the model has more modules than precision can be chosen for", .got = std::to_string(count),
                .want = "at most " + std::to_string(kMost), .fix = "lower --num-layers or --num-experts");
}

}  // namespace

std::vector<PolicyModule> modules_of(const ModuleRow& row) {
  std::vector<PolicyModule> modules;
  if (!has_weight(row)) return modules;
  const bool linear = row.multiplies && !row.is_gate;
  const std::string name = row.parameter.substr(0, row.parameter.size() - kSuffix);
  for (int64_t layer = row.first_layer; layer < row.first_layer + row.layers; ++layer) {
    const std::string one = with_number(name, layer);
    for (int64_t expert = 0; expert < row.per_layer; ++expert)
      modules.push_back({with_number(one, expert), row.shape, linear});
  }
  return modules;
}

std::vector<PolicyModule> linear_modules(const ModelConfig& config) {
  const std::vector<ModuleRow> rows = module_table(config);
  check_count(rows);
  std::vector<PolicyModule> modules;
  for (const ModuleRow& row : rows) {
    for (PolicyModule& module : modules_of(row)) modules.push_back(std::move(module));
  }
  return modules;
}

}  // namespace ranklab
