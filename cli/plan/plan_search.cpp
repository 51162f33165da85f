#include "cli/plan/plan_search.h"

#include <unistd.h>

#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <vector>

#include "cli/common/json_output.h"
#include "cli/common/table.h"
#include "cli/common/terminal.h"
#include "cli/training_module.h"
#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/base/output_file.h"
#include "core/base/text.h"
#include "core/config/config_fields.h"
#include "core/plan/layout_search.h"
#include "core/plan/step_time.h"

namespace ranklab {
namespace {

constexpr size_t kShown = 10;
constexpr const char* kCsvHead = "layout,step_s,mfu,tokens_per_s_per_gpu,memory_gb,fits,refused\n";

// Where a plan's time goes.
struct Details {
  RunPlan plan;
  StepTime time;
};

class Searcher {
 public:
  Searcher(const ConfigOptions& options, const SearchRequest& request)
      : request_(request), base_(options.config()), profile_(options.resolve(whole()).profile) {}

  PlannedLayout plan(const LayoutChoice& choice) {
    PlannedLayout row{.choice = choice, .step_s = 0, .bytes = 0, .refused = {}};
    TrainConfig config = base_;
    choice.apply(config);
    try {
      const Details one = details_of(config, row);
      row.step_s = one.time.total_ns * 1e-9;
    } catch (const Error& error) {
      row.refused = error.what();
    }
    return row;
  }

  Details details_of(const TrainConfig& config, PlannedLayout& row) const {
    Details out{.plan = resolve(config), .time = {}};
    const StepRecord record = training_functions().record_step(out.plan);
    out.time = time_of(record);
    row.bytes = static_cast<double>(together(record.fullest().at_peak));
    return out;
  }

  std::vector<PlannedLayout> run() {
    const bool shown = on_terminal(STDERR_FILENO);
    const std::vector<PlannedLayout> rows = search_layouts(
        base_, profile_, {most_bytes(), request_.plans}, [this](const LayoutChoice& one) { return plan(one); },
        [&](int done, int of) {
          if (shown) std::fprintf(stderr, "\r%d of at most %d plans ", done, of);
        });
    if (shown) std::fprintf(stderr, "\n");
    return rows;
  }

  double most_bytes() const { return static_cast<double>(profile_.memory_bytes) * request_.memory_share; }
  double tokens() const { return static_cast<double>(base_.global_batch_size * base_.model.seq_length); }
  double mfu(double step_s) const {
    const double flops = base_.model.training_flops_per_token(base_.model.seq_length) * tokens() / base_.parallel.world;
    return flops / (step_s * profile_.peak_flops(base_.element_dtype()));
  }
  double rate(double step_s) const { return tokens() / step_s / base_.parallel.world; }
  bool fits(const PlannedLayout& row) const { return row.refused.empty() && row.bytes <= most_bytes(); }
  const TrainConfig& base() const { return base_; }
  const HardwareProfile& profile() const { return profile_; }

 private:
  // As the profile and the model are read; any layout is right for that.
  TrainConfig whole() const {
    TrainConfig config = base_;
    LayoutChoice{}.apply(config);
    return config;
  }

  const SearchRequest& request_;
  TrainConfig base_;
  HardwareProfile profile_;
};

std::string rows_text(const Searcher& search, const std::vector<PlannedLayout>& rows) {
  Table table({"layout", "step", "MFU", "tokens/s a GPU", "memory", "front"});
  for (size_t i = 0; i < std::min(kShown, rows.size()); ++i) {
    const PlannedLayout& row = rows[i];
    if (!search.fits(row)) break;
    table.add({"`" + row.choice.flags() + "`", human_ns(row.step_s * 1e9),
               strprintf("%.1f %%", 100 * search.mfu(row.step_s)), strprintf("%.0f", search.rate(row.step_s)),
               human_bytes(row.bytes), on_front(rows, row, search.most_bytes()) ? "yes" : ""});
  }
  return table.for_stdout();
}

std::string csv_text(const Searcher& search, const std::vector<PlannedLayout>& rows) {
  std::string text = kCsvHead;
  for (const PlannedLayout& row : rows) {
    std::string why = row.refused;
    std::replace(why.begin(), why.end(), '"', '\'');
    const bool planned = row.refused.empty();
    text += strprintf("%s,%.6g,%.4g,%.6g,%.4g,%d,\"%s\"\n", row.choice.flags().c_str(), row.step_s,
                      planned ? search.mfu(row.step_s) : 0.0, planned ? search.rate(row.step_s) : 0.0, row.bytes * 1e-9,
                      search.fits(row) ? 1 : 0, why.c_str());
  }
  return text;
}

// "--tp 8 --pp 4" on top of the searched settings.
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
  std::map<std::string, double> parts = {{"compute", time.compute_ns},
                                         {"waiting in the pipeline", time.pipeline_idle_ns}};
  for (const auto& [axis, exposed] : time.exposed_ns) parts["exposed " + std::string(name(axis))] = exposed;
  return parts;
}

std::string why_text(const Searcher& search, const PlannedLayout& best, const std::string& flags) {
  PlannedLayout a, b;
  TrainConfig chosen = search.base();
  best.choice.apply(chosen);
  const Details one = search.details_of(chosen, a), other = search.details_of(with_flags(search.base(), flags), b);
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
  table.add(
      {"memory", human_bytes(a.bytes), human_bytes(b.bytes), b.bytes > search.most_bytes() ? "does not fit" : ""});
  return table.for_stdout();
}

nlohmann::ordered_json rows_json(const Searcher& search, const std::vector<PlannedLayout>& rows) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const PlannedLayout& row : rows) {
    nlohmann::ordered_json json = {{"flags", row.choice.flags()}, {"fits", search.fits(row)}};
    if (row.refused.empty()) {
      json["step_s"] = row.step_s;
      json["mfu"] = search.mfu(row.step_s);
      json["tokens_per_s_per_gpu"] = search.rate(row.step_s);
      json["memory_bytes"] = row.bytes;
      json["on_front"] = search.fits(row) && on_front(rows, row, search.most_bytes());
    } else {
      json["refused"] = row.refused;
    }
    all.push_back(json);
  }
  return {{"rows", all}};
}

void write_csv(const std::string& path, const std::string& text) {
  AtomicFile file(path, {.where = "plan search", .what = "cannot write the table", .fix = "check --out"});
  file.write(text);
  file.commit();
}

}  // namespace

int run_plan_search(const ConfigOptions& options, const SearchRequest& request) {
  if (!request.out.empty())
    check_output({.path = request.out,
                  .option = "--out",
                  .own = [&] { return begins_with(request.out, kCsvHead); },
                  .force = request.force});
  Searcher search(options, request);
  if (!request.why.empty()) resolve(with_flags(search.base(), request.why));  // refused before the search
  const std::vector<PlannedLayout> rows = search.run();
  RANKLAB_CHECK(!rows.empty() && search.fits(rows.front()), ErrorKind::kInvalidArgument, .where = "plan search",
                .what = "no layout fits this machine",
                .got = rows.empty() ? "none that divides the world and the batch"
                                    : "at least " + human_bytes(rows.front().bytes) + " a rank",
                .want = "at most " + human_bytes(search.most_bytes()),
                .fix = "use more or larger GPUs, another --gbs, or a larger --plans");
  if (!request.out.empty()) write_csv(request.out, csv_text(search, rows));
  if (request.json) {
    std::fputs(json_result(rows_json(search, rows)).c_str(), stdout);
    return 0;
  }
  std::fputs(rows_text(search, rows).c_str(), stdout);
  if (!request.why.empty()) std::printf("\n%s", why_text(search, rows.front(), request.why).c_str());
  return 0;
}

}  // namespace ranklab
