// `ranklab precision quantize`: the effect of rounding numbers from a distribution or a file to each format, unscaled
// and with the scales of each kind of group.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/common/command_line.h"
#include "cli/common/json_output.h"
#include "cli/precision/precision_numbers.h"
#include "cli/precision/precision_subcommands.h"
#include "cli/precision/precision_text.h"
#include "core/base/text.h"
#include "core/precision/quantization_error.h"
#include "core/precision/rounding_error.h"

namespace ranklab {
namespace {

using nlohmann::ordered_json;

struct QuantizeRequest {
  NumberSource source = {};
  bool json = false;
};

// A format, its scaling, and the resulting error. Without scaling, values are simply cast to the format.
struct Outcome {
  TensorPrecision precision = {};
  bool scaled = true;
  QuantizationError error = {};
};

std::vector<TensorPrecision> groups_of(const NumberFormat* format) {
  constexpr int64_t kDeepSeek = 128, kMicro = 32, kNvfp4 = 16;
  std::vector<TensorPrecision> all = {
      {.format = format},
      {.format = format, .granularity = Granularity::kRow},
      {.format = format, .granularity = Granularity::kTile, .block = kDeepSeek},
      {.format = format, .granularity = Granularity::kBlock, .block = kDeepSeek},
      {.format = format, .granularity = Granularity::kTile, .block = kMicro, .scale = ScaleRule::kE8M0},
      {.format = format, .granularity = Granularity::kTile, .block = kMicro, .scale = ScaleRule::kE8M0Up}};
  if (format == e2m1())
    all.push_back({.format = format, .granularity = Granularity::kTile, .block = kNvfp4, .scale = ScaleRule::kE4M3});
  return all;
}

std::vector<Outcome> round_all_ways(const NumberMatrix& m) {
  std::vector<Outcome> outcomes;
  const std::span<const float> numbers(m.data.data(), static_cast<size_t>(m.count));
  for (const NumberFormat* format : {e4m3(), e5m2(), e2m1()}) {
    outcomes.push_back({{.format = format}, false, measure_quantization(*format, numbers)});
    for (const TensorPrecision& precision : groups_of(format)) {
      outcomes.push_back({precision, true, measure_rounding({m.data.data(), m.rows, m.cols, m.cols}, precision)});
      // Excludes the zeros that fill the last row.
      outcomes.back().error.count = std::min(outcomes.back().error.count, m.count);
    }
  }
  return outcomes;
}

std::string label(const Outcome& o) {
  return o.scaled ? tensor_text(o.precision, "") : std::string(o.precision.format->name) + " unscaled";
}

std::string decibels(double sqnr) { return std::isfinite(sqnr) ? strprintf("%7.1f dB", sqnr) : "     exact"; }

std::string table(const NumberMatrix& m, const std::vector<Outcome>& outcomes) {
  std::string text =
      strprintf("%ld numbers of %s as %ld rows of %ld, to nearest, saturated\n", static_cast<long>(m.count),
                m.name.c_str(), static_cast<long>(m.rows), static_cast<long>(m.cols));
  if (const int64_t left_out = m.count - outcomes.front().error.count; left_out > 0)
    text += strprintf("%ld of them are not finite and left out, with their groups\n", static_cast<long>(left_out));
  text += strprintf("  %-24s %11s %11s %10s\n", "held in", "underflow", "saturated", "SQNR");
  for (const Outcome& o : outcomes)
    text += strprintf("  %-24s %9.2f %% %9.2f %% %s\n", label(o).c_str(), 100 * o.error.underflow_share(),
                      100 * o.error.saturated_share(), decibels(o.error.sqnr_db()).c_str());
  return text;
}

// For many tensors: SQNR only, a line each.
std::string summary(const std::vector<NumberMatrix>& matrices) {
  const std::vector<TensorPrecision> ways = {groups_of(e4m3())[0], groups_of(e4m3())[2], groups_of(e4m3())[5],
                                             groups_of(e5m2())[0], groups_of(e2m1())[4], groups_of(e2m1())[6]};
  size_t widest = 6;
  for (const NumberMatrix& m : matrices) widest = std::max(widest, m.name.size());
  const int names = static_cast<int>(widest);
  std::string text = "SQNR in dB; --tensor NAME: one in full\n" + strprintf("  %-*s %10s", names, "tensor", "numbers");
  for (const TensorPrecision& way : ways) text += strprintf("  %s", tensor_text(way, "").c_str());
  text += "\n";
  for (const NumberMatrix& m : matrices) {
    text += strprintf("  %-*s %10ld", names, m.name.c_str(), static_cast<long>(m.count));
    for (const TensorPrecision& way : ways) {
      const double sqnr = measure_rounding({m.data.data(), m.rows, m.cols, m.cols}, way).sqnr_db();
      const int width = static_cast<int>(tensor_text(way, "").size());
      text += std::isfinite(sqnr) ? strprintf("  %*.1f", width, sqnr) : strprintf("  %*s", width, "exact");
    }
    text += "\n";
  }
  return text;
}

ordered_json outcome_json(const Outcome& o) {
  const double sqnr = o.error.sqnr_db();
  return {{"format", o.precision.format->name},
          {"held", o.scaled ? tensor_json(o.precision) : ordered_json()},
          {"underflow", o.error.underflow_share()},
          {"saturated", o.error.saturated_share()},
          {"sqnr_db", std::isfinite(sqnr) ? ordered_json(sqnr) : ordered_json(nullptr)}};
}

std::string matrices_json(const std::vector<NumberMatrix>& matrices) {
  ordered_json tensors = ordered_json::array();
  for (const NumberMatrix& m : matrices) {
    ordered_json rows = ordered_json::array();
    for (const Outcome& o : round_all_ways(m)) rows.push_back(outcome_json(o));
    tensors.push_back(
        {{"numbers", m.name}, {"count", m.count}, {"rows", m.rows}, {"cols", m.cols}, {"formats", std::move(rows)}});
  }
  return json_result({{"tensors", tensors}});
}

int print_quantized(const QuantizeRequest& request) {
  const std::vector<NumberMatrix> matrices = read_numbers(request.source);
  const std::string text = request.json           ? matrices_json(matrices)
                           : matrices.size() == 1 ? table(matrices[0], round_all_ways(matrices[0]))
                                                  : summary(matrices);
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace

PrecisionSubcommand add_precision_quantize(CommandLine& app) {
  CommandLine* command = app.add_subcommand("quantize", "error of rounding numbers to each format");
  auto request = std::make_shared<QuantizeRequest>();
  NumberSource& source = request->source;
  command
      ->add_option("NUMBERS", source.text,
                   "a distribution, as in normal(0,1e-3), or a file: .safetensors, .txt with numbers, else raw fp32")
      ->required();
  command->add_option("--tensor", source.tensor, "one tensor of a .safetensors file");
  command->add_option("--samples", source.samples, "number of samples to draw")
      ->range(1, 1 << 26)
      ->capture_default_str();
  command->add_option("--seed", source.seed, "seed of the samples")->capture_default_str();
  command->add_option("--cols", source.cols, "row length, for input without a shape")
      ->range(1, 1 << 26)
      ->capture_default_str();
  command->add_flag("--json", request->json, "print one JSON object");
  return {command, [request] { return print_quantized(*request); }};
}

}  // namespace ranklab
