#include "cli/trace/trace_compare.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/common/json_output.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "viz/model/store/load_trace.h"
#include "viz/model/store/time_text.h"
#include "viz/model/tables/op_table.h"
#include "viz/model/trace_diff.h"

namespace ranklab {
namespace {

using nlohmann::ordered_json;

std::string signed_percent(double share) {
  if (std::isinf(share)) return share > 0 ? "new" : "gone";
  return strprintf("%+.2f %%", 100 * share);
}

std::string signed_time(const viz::TraceStore& store, int64_t time) {
  return (time < 0 ? "-" : "+") + format_time(store, std::abs(time));
}

void print_ops(const viz::TraceStore& store, const viz::TraceDiff& diff, int rows) {
  const bool mean = diff.of_a_rank;
  std::printf("%-32s %8s %8s %14s %14s %14s %10s\n", "operation", "count a", "count b", mean ? "a per rank" : "total a",
              mean ? "b per rank" : "total b", "delta", "");
  int shown = 0;
  for (const viz::OpDiff& op : diff.ops) {
    if (shown++ == rows) break;
    std::printf("%-32s %8.6g %8.6g %14s %14s %14s %10s\n", viz::short_name(op.name).c_str(), op.a.count, op.b.count,
                format_time(store, std::llround(op.a.total_ns)).c_str(),
                format_time(store, std::llround(op.b.total_ns)).c_str(), signed_time(store, op.delta_ns()).c_str(),
                signed_percent(op.delta_share()).c_str());
  }
}

void print_values(const viz::TraceStore& store, const viz::TraceDiff& diff) {
  const auto time_line = [&](const viz::ValueDiff& value) {
    std::printf(
        "%-24s %14s %14s %14s %10s\n", value.name.c_str(), format_time(store, static_cast<int64_t>(value.a)).c_str(),
        format_time(store, static_cast<int64_t>(value.b)).c_str(),
        signed_time(store, static_cast<int64_t>(value.delta())).c_str(), signed_percent(value.delta_share()).c_str());
  };
  std::printf("\n%-24s %14s %14s %14s\n", "", "a", "b", "delta");
  time_line(diff.makespan);
  for (const viz::ValueDiff& value : diff.step_ns) {
    if (value.delta() != 0) time_line(value);
  }
  for (const viz::ValueDiff& value : diff.memory) {
    if (value.delta() == 0) continue;
    std::printf("%-24s %14s %14s %14s %10s\n", value.name.c_str(), human_bytes(value.a).c_str(),
                human_bytes(value.b).c_str(),
                ((value.delta() < 0 ? "-" : "+") + human_bytes(std::abs(value.delta()))).c_str(),
                signed_percent(value.delta_share()).c_str());
  }
}

// A sum over ranks is a whole number, but a mean may not be.
ordered_json count_json(double number) {
  const int64_t whole = std::llround(number);
  return static_cast<double>(whole) == number ? ordered_json(whole) : ordered_json(number);
}

ordered_json value_json(const viz::ValueDiff& value) {
  return {{"name", value.name}, {"a", value.a}, {"b", value.b}, {"delta", value.delta()}};
}

ordered_json json_of(const viz::TraceDiff& diff) {
  ordered_json ops = ordered_json::array(), steps = ordered_json::array(), memory = ordered_json::array();
  for (const viz::OpDiff& op : diff.ops) {
    ops.push_back({{"name", op.name},
                   {"count_a", count_json(op.a.count)},
                   {"count_b", count_json(op.b.count)},
                   {"total_ns_a", count_json(op.a.total_ns)},
                   {"total_ns_b", count_json(op.b.total_ns)},
                   {"delta_ns", op.delta_ns()}});
  }
  for (const viz::ValueDiff& value : diff.step_ns) steps.push_back(value_json(value));
  for (const viz::ValueDiff& value : diff.memory) memory.push_back(value_json(value));
  return {{"same", diff.same()},
          {"steps", diff.steps},
          {"of_a_rank", diff.of_a_rank},
          {"makespan_ns", value_json(diff.makespan)},
          {"operations", ops},
          {"step_ns", steps},
          {"memory", memory},
          {"notes", diff.notes}};
}

}  // namespace

int trace_diff(const TraceDiffOptions& options) {
  const viz::TraceStore a = viz::load_trace(options.a), b = viz::load_trace(options.b);
  const viz::TraceDiff diff = viz::diff_traces(a, b);
  const bool over = options.fail_over >= 0 && 100 * diff.worst_share() > options.fail_over;
  if (options.json) {
    ordered_json data = json_of(diff);
    data["over"] = over;
    std::printf("%s\n", json_result(data).c_str());
    return over ? exit_code(ErrorKind::kCheckFailed) : 0;
  }
  std::printf("a: %s\nb: %s\n", a.source().c_str(), b.source().c_str());
  for (const std::string& note : diff.notes) std::printf("they differ in %s\n", note.c_str());
  if (diff.same()) {
    std::printf("the same: every delta is 0\n");
    return 0;
  }
  std::printf("%s\n\n", diff.steps > 0 ? (std::to_string(diff.steps) + " pairs of steps").c_str() : "whole traces");
  print_ops(a, diff, options.rows);
  print_values(a, diff);
  if (over)
    std::printf("\nover the limit of %g %%: %s\n", options.fail_over, signed_percent(diff.worst_share()).c_str());
  return over ? exit_code(ErrorKind::kCheckFailed) : 0;
}

}  // namespace ranklab
