#include "cli/plan/plan_search.h"

#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "cli/common/json_output.h"
#include "cli/common/model_text.h"
#include "cli/common/picture_file.h"
#include "cli/common/pipeline_text.h"
#include "cli/common/style.h"
#include "cli/common/table.h"
#include "cli/plan/measured_text.h"
#include "cli/plan/plan_layouts.h"
#include "cli/training_module.h"
#include "core/base/counted.h"
#include "core/base/error.h"
#include "core/base/files/atomic_file.h"
#include "core/base/files/output_file.h"
#include "core/base/text.h"
#include "core/config/settings/fields.h"
#include "core/spec/module_table.h"
#include "viz/model/svg/front_drawing.h"

namespace ranklab {
namespace {

constexpr size_t kShownPlans = 10;
constexpr const char* kCsvHead = "layout,step_s,mfu,tokens_per_s_per_gpu,memory_gb,fits,refused\n";

// Names what the layouts are planned for.
std::string title_of(const RunPlan& plan) {
  const TrainConfig& c = plan.config;
  const ModelCounts counts = count_model(c.model, c.model.seq_length);
  return model_title(plan, counts.total + counts.mtp) + strprintf("; %s a step on %d x %s\n",
                                                                  counted(c.global_batch_size, "sequence").c_str(),
                                                                  c.parallel.world, plan.profile.title.c_str());
}

std::string rows_text(const LayoutPlanner& search, const std::vector<PlannedLayout>& rows) {
  Table table({"layout", "step", "MFU", "tokens/s per GPU", "memory", "front"});
  for (size_t i = 0; i < std::min(kShownPlans, rows.size()); ++i) {
    const PlannedLayout& row = rows[i];
    if (!search.fits(row)) break;
    table.add({"`" + row.choice.flags() + "`", human_ns(row.step_s * 1e9), strprintf("%.1f %%", 100 * row.mfu),
               strprintf("%.0f", search.rate(row.step_s)), human_bytes(row.bytes),
               on_front(rows, row, search.most_bytes()) ? "yes" : ""});
  }
  return table.for_stdout();
}

std::string csv_text(const LayoutPlanner& search, const std::vector<PlannedLayout>& rows) {
  std::string text = kCsvHead;
  for (const PlannedLayout& row : rows) {
    std::string why = row.refused;
    std::replace(why.begin(), why.end(), '"', '\'');
    const bool planned = row.refused.empty();
    text += strprintf("%s,%.6g,%.4g,%.6g,%.4g,%d,\"%s\"\n", row.choice.flags().c_str(), row.step_s, row.mfu,
                      planned ? search.rate(row.step_s) : 0.0, row.bytes * 1e-9, search.fits(row) ? 1 : 0, why.c_str());
  }
  return text;
}

// The searched settings, overridden by flags such as "--tp 8 --pp 4".
TrainConfig with_flags(TrainConfig config, const std::string& flags) {
  LayoutChoice{}.apply(config);
  std::istringstream words(flags);
  for (std::string flag, value; words >> flag;) {
    RANKLAB_CHECK(static_cast<bool>(words >> value), ErrorKind::kInvalidArgument, .where = "plan search",
                  .what = "--why takes flags with their values", .got = quote(flags), .want = "\"--tp 8 --pp 4\"",
                  .fix = "write each flag with a value");
    set_config_field(config, flag, value);
  }
  return config;
}

std::map<std::string, double> parts_of(const StepTime& time) {
  std::map<std::string, double> parts = {{"compute", time.compute_ns - time.launch_ns},
                                         {"waiting for kernel launches", time.launch_ns},
                                         {"waiting in the pipeline", time.pipeline_idle_ns},
                                         {"collectives beside compute", time.added.hidden_ns},
                                         {"passing on updated parameters", time.added.pieces_ns},
                                         {"waiting for the slowest GPU", time.added.slowest_ns},
                                         {"outer updates", time.added.outer_ns}};
  for (const auto& [axis, exposed] : time.exposed_ns) parts["exposed " + std::string(name(axis))] = exposed;
  return parts;
}

std::string why_text(const LayoutPlanner& search, const PlannedLayout& best, const std::string& flags) {
  const LayoutDetails one = LayoutPlanner::details_of(search.with(best.choice)),
                      other = LayoutPlanner::details_of(with_flags(search.base(), flags));
  const auto in_best = parts_of(one.time), in_other = parts_of(other.time);
  Table table({"", "`" + best.choice.flags() + "`", "`" + flags + "`", "more"});
  const auto ms = [](double ns) { return strprintf("%.1f ms", ns * 1e-6); };
  const auto value = [](const std::map<std::string, double>& of, const std::string& key) {
    const auto it = of.find(key);
    return it == of.end() ? 0.0 : it->second;
  };
  std::map<std::string, double> all = in_other;
  all.insert(in_best.begin(), in_best.end());
  for (const auto& [part, unused] : all) {
    const double x = value(in_best, part), y = value(in_other, part);
    if (x > 0 || y > 0) table.add({part, ms(x), ms(y), ms(y - x)});
  }
  table.add({"step", ms(one.time.total_ns), ms(other.time.total_ns), ms(other.time.total_ns - one.time.total_ns)});
  table.add({"memory", human_bytes(one.bytes), human_bytes(other.bytes),
             other.bytes > search.most_bytes() ? "does not fit" : ""});
  return table.for_stdout();
}

nlohmann::ordered_json rows_json(const LayoutPlanner& search, const std::vector<PlannedLayout>& rows,
                                 const std::vector<MeasuredLayout>& measured) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const PlannedLayout& row : rows) {
    nlohmann::ordered_json json = {{"flags", row.choice.flags()}, {"fits", search.fits(row)}};
    if (row.refused.empty()) {
      json["step_s"] = row.step_s;
      json["mfu"] = row.mfu;
      json["tokens_per_s_per_gpu"] = search.rate(row.step_s);
      json["memory_bytes"] = row.bytes;
      json["on_front"] = search.fits(row) && on_front(rows, row, search.most_bytes());
    } else {
      json["refused"] = row.refused;
    }
    all.push_back(json);
  }
  nlohmann::ordered_json runs = nlohmann::ordered_json::array();
  for (const MeasuredLayout& run : measured)
    runs.push_back({{"flags", run.planned.choice.flags()},
                    {"planned_s", run.planned.step_s},
                    {"virtual_s", run.virtual_s},
                    {"wall_s", run.wall_s}});
  return {{"rows", all}, {"measured", runs}};
}

viz::Drawing front_of(const LayoutPlanner& search, const std::vector<PlannedLayout>& rows) {
  std::vector<viz::FrontPoint> points;
  for (const PlannedLayout& row : rows)
    if (row.refused.empty())
      points.push_back({.name = row.choice.flags(),
                        .step_s = row.step_s,
                        .bytes = row.bytes,
                        .on_front = search.fits(row) && on_front(rows, row, search.most_bytes())});
  const TrainConfig& c = search.base();
  return viz::front_drawing(strprintf("%s on %d x %s, %s a step", model_name(c).c_str(), c.parallel.world,
                                      search.profile().title.c_str(), counted(c.global_batch_size, "sequence").c_str()),
                            points, search.most_bytes());
}

void write_table(const std::string& path, const std::string& text) {
  AtomicFile file(path, {.where = "plan search", .what = "cannot write the table", .fix = "check --out"});
  file.write(text);
  file.commit();
}

// Rejects settings that give what the search is to find.
void check_open(const ConfigOptions& options) {
  for (const char* key : {"parallel.tp", "parallel.pp", "parallel.cp", "parallel.ep", "parallel.dp", "parallel.vpp",
                          "parallel.zero_stage", "parallel.pipeline_schedule", "train.micro_batch_size",
                          "parallel.grad_sync", "train.num_microbatches", "memory.recompute_granularity"}) {
    RANKLAB_CHECK(!options.given(key), ErrorKind::kInvalidArgument, .where = "plan search",
                  .what = "the search chooses this setting itself", .got = find_field(key)->flags.back(),
                  .want = "--world-size and --gbs, and a model",
                  .fix = "leave it out; --why \"--tp 8 --pp 4\" compares a layout, ranklab plan run plans one");
  }
}

}  // namespace

TrainConfig planned_config(const ConfigOptions& options) {
  TrainConfig config = options.config();
  if (options.given("data.path") && !options.given("data.mock")) config.mock_data = false;
  return config;
}

int run_plan_search(const ConfigOptions& options, const SearchRequest& request) {
  check_open(options);
  std::vector<PictureFile> pictures;
  for (const std::string& path : request.out) {
    if (is_picture(path)) {
      pictures.emplace_back(path, "plan search", ground_of(request.theme), request.force);
    } else {
      check_output({.path = path,
                    .option = "--out",
                    .own = [&] { return begins_with(path, kCsvHead); },
                    .force = request.force});
    }
  }
  const LayoutPlanner search(planned_config(options), request.memory_share);
  if (!request.why.empty()) resolve(with_flags(search.base(), request.why));  // rejected before the search
  // A table file, a picture or JSON shows all layouts; the printed text shows only the best.
  const bool all = request.json || !request.out.empty();
  const std::vector<PlannedLayout> rows = search.search(
      {.plans = request.plans, .best = all ? 0 : std::max(static_cast<int>(kShownPlans), request.measure)});
  search.require_fit(rows, "plan search");
  const RunPlan best = resolve(search.with(rows.front().choice));
  const std::string hint = fp32_hint(best);
  for (const PictureFile& picture : pictures) picture.write(front_of(search, rows));
  for (const std::string& path : request.out)
    if (!is_picture(path)) write_table(path, csv_text(search, rows));
  if (request.json) {
    std::vector<std::string> warnings;
    if (!hint.empty()) warnings.push_back(hint);
    const auto data = rows_json(search, rows, training_functions().measure_layouts(search, rows, request.measure));
    std::fputs(json_result(data, warnings).c_str(), stdout);
    return 0;
  }
  std::fputs(title_of(best).c_str(), stdout);
  if (!hint.empty()) std::printf("%s\n", style_for(stdout).yellow("warning: " + hint).c_str());
  std::fputs(rows_text(search, rows).c_str(), stdout);
  std::fflush(stdout);
  const std::vector<MeasuredLayout> measured = training_functions().measure_layouts(search, rows, request.measure);
  if (!measured.empty()) std::printf("\n%s", measured_text(measured).c_str());
  if (!request.why.empty()) std::printf("\n%s", why_text(search, rows.front(), request.why).c_str());
  return 0;
}

}  // namespace ranklab
