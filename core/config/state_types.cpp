#include "core/config/state_types.h"

#include <string>

#include "core/base/error.h"
#include "core/precision/precision_policy.h"
#include "core/spec/hidden_matrix.h"
#include "core/spec/module_table.h"

namespace ranklab {
namespace {

// Refuses a dtype that does not fit parameters of this dtype.
void check_type(const std::string& flag, DType got, DType params, std::initializer_list<DType> allowed) {
  std::string want;
  for (const DType one : allowed) {
    if (one == got) return;
    want += (want.empty() ? "" : " or ") + std::string(name(one));
  }
  throw Error(ErrorKind::kInvalidArgument,
              {.where = "config",
               .what = flag + " cannot be combined with parameters in " + std::string(name(params)),
               .got = flag + " " + std::string(name(got)),
               .want = want,
               .fix = "leave it out (auto)"});
}

DType chosen(const std::string& flag, DType automatic) { return flag == "auto" ? automatic : parse_dtype(flag); }

void check(const StateTypes& types, const TrainConfig& config) {
  const PrecisionConfig& p = config.precision;
  const DType params = types.params;
  const bool narrow = types.param_bytes() == 2;
  if (narrow) {
    check_type("--main-params-dtype", types.main_params, params, {DType::kFloat32, params});
    check_type("--main-grads-dtype", types.main_grads, params, {params, DType::kFloat32});
  } else {
    check_type("--main-params-dtype", types.main_params, params, {params});
    check_type("--main-grads-dtype", types.main_grads, params, {params});
  }
  const bool asked = p.exp_avg_dtype != "auto" || p.exp_avg_sq_dtype != "auto";
  const bool has_them = config.optimizer != OptimizerKind::kSgd && (types.moments > 1 || p.exp_avg_sq_dtype == "auto");
  RANKLAB_CHECK(!asked || has_them, ErrorKind::kInvalidArgument, .where = "config",
                .what = "--exp-avg-dtype and --exp-avg-sq-dtype apply to AdamW's moments",
                .got = "--optimizer " + std::string(optimizer_row(config.optimizer).name), .want = "--optimizer adamw",
                .fix = "leave them out");
  if (params != DType::kFloat64) return;
  check_type("--exp-avg-dtype", types.exp_avg, params, {params});
  check_type("--exp-avg-sq-dtype", types.exp_avg_sq, params, {params});
}

}  // namespace

int64_t StateTypes::moment_bytes(bool hidden_matrix) const {
  const int kept = hidden_matrix ? matrix_moments : moments;
  return (kept > 0 ? size_bytes(exp_avg) : 0) + (kept > 1 ? size_bytes(exp_avg_sq) : 0);
}

StateTypes usual_state_types(DType params, int moments, std::optional<int> matrix_moments) {
  const DType wide = size_bytes(params) == 2 ? DType::kFloat32 : params;
  return {.params = params,
          .main_params = wide,
          .main_grads = params,
          .exp_avg = wide,
          .exp_avg_sq = wide,
          .moments = moments,
          .matrix_moments = matrix_moments.value_or(moments)};
}

StateTypes state_types(const RunPlan& plan) {
  const TrainConfig& c = plan.config;
  const PrecisionConfig& p = c.precision;
  const bool sgd = c.optimizer == OptimizerKind::kSgd;
  const OptimizerRow& row = optimizer_row(c.optimizer);
  const StateTypes usual = sgd ? usual_state_types(c.element_dtype(), c.sgd_momentum != 0 ? 1 : 0)
                               : usual_state_types(c.element_dtype(), row.moments, row.matrix_moments);
  StateTypes types = usual;
  const bool narrow = types.param_bytes() == 2;
  if (plan.precision) {
    const PrecisionRecipe& recipe = plan.precision->recipe();
    if (narrow) types.main_params = recipe.main_params, types.main_grads = recipe.main_grads;
    types.exp_avg = recipe.exp_avg, types.exp_avg_sq = recipe.exp_avg_sq;
  }
  types.main_params = chosen(p.main_params_dtype, types.main_params);
  types.main_grads = chosen(p.main_grads_dtype, types.main_grads);
  types.exp_avg = chosen(p.exp_avg_dtype, types.exp_avg);
  types.exp_avg_sq = chosen(p.exp_avg_sq_dtype, types.exp_avg_sq);
  check(types, c);
  if (sgd) types.exp_avg = types.exp_avg_sq = usual.exp_avg;
  if (c.diloco.enabled()) types.outer_numbers = c.diloco.sync_delay > 0 ? 3 : 2;
  return types;
}

double mean_optimizer_bytes(const RunPlan& plan) {
  const StateTypes types = state_types(plan);
  double bytes = 0, parameters = 0;
  for (const ModuleRow& row : module_table(plan.config.model)) {
    const auto count = static_cast<double>(row.parameters());
    parameters += count;
    bytes += count * static_cast<double>(types.optimizer_bytes(is_hidden_matrix(row)));
  }
  return bytes / parameters;
}

}  // namespace ranklab
