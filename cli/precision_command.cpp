// ranklab precision: its subcommands, and two of them: table, every code of a number format, and quantize, what
// rounding to each of them does to numbers drawn from a distribution. Arithmetic alone: nothing is started.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/precision_subcommands.h"
#include "core/base/error.h"
#include "core/base/philox.h"
#include "core/base/text.h"
#include "core/precision/quantization_error.h"

namespace ranklab {
namespace {

using nlohmann::ordered_json;

struct PrecisionOptions {
  std::string format = "e4m3", numbers = "normal(0,1)";
  int64_t samples = 1 << 20;
  uint64_t seed = 1234;
  bool json = false;
};

std::string number_text(double value) { return std::isnan(value) ? "nan" : strprintf("%.7g", value); }

ordered_json number_json(double value) {
  return std::isfinite(value) ? ordered_json(value) : ordered_json(number_text(value));
}

int print_table(const PrecisionOptions& o) {
  const NumberFormat& f = find_number_format(o.format);
  if (o.json) {
    ordered_json codes = ordered_json::array();
    for (int code = 0; code < f.codes(); ++code) codes.push_back(number_json(decode(f, static_cast<uint8_t>(code))));
    std::fputs(json_result({{"format", f.name},
                            {"exponent_bits", f.exponent_bits},
                            {"mantissa_bits", f.mantissa_bits},
                            {"bias", f.bias},
                            {"largest", f.largest()},
                            {"smallest_normal", f.smallest_normal()},
                            {"smallest", f.smallest()},
                            {"codes", codes}})
                   .c_str(),
               stdout);
    return 0;
  }
  std::printf("%s: %d exponent bits, bias %d, %d mantissa bits; largest %s, smallest normal %s, smallest %s\n",
              std::string(f.name).c_str(), f.exponent_bits, f.bias, f.mantissa_bits, number_text(f.largest()).c_str(),
              number_text(f.smallest_normal()).c_str(), number_text(f.smallest()).c_str());
  constexpr int kColumns = 8;
  for (int first = 0; first < f.codes(); first += kColumns) {
    std::printf("  %02x", first);
    for (int code = first; code < std::min(first + kColumns, f.codes()); ++code)
      std::printf(" %13s", number_text(decode(f, static_cast<uint8_t>(code))).c_str());
    std::printf("\n");
  }
  return 0;
}

// "normal(0,1e-3)" -> mean and standard deviation
std::pair<double, double> parse_normal(const std::string& text) {
  double mean = 0, deviation = 0;
  int end = 0;
  const bool parsed = std::sscanf(text.c_str(), "normal(%lf,%lf)%n", &mean, &deviation, &end) == 2 &&
                      static_cast<size_t>(end) == text.size();
  RANKLAB_CHECK(parsed && std::isfinite(mean) && std::isfinite(deviation) && deviation >= 0,
                ErrorKind::kInvalidArgument, .where = "precision quantize", .what = "not a distribution",
                .got = quote(text), .want = "normal(MEAN,DEVIATION)", .fix = "for example 'normal(0,1e-3)'");
  return {mean, deviation};
}

std::vector<float> draw(const PrecisionOptions& o) {
  const auto [mean, deviation] = parse_normal(o.numbers);
  std::vector<float> values(static_cast<size_t>(o.samples));
  RandomStream(o.seed, RandomPurpose::kSample, "precision quantize").fill_normal(0, values);
  for (float& value : values) value = static_cast<float>(mean + deviation * value);
  return values;
}

int quantize(const PrecisionOptions& o) {
  const std::vector<float> values = draw(o);
  ordered_json rows = ordered_json::array();
  if (!o.json) {
    std::printf("%ld numbers of %s, saturated, to nearest\n", static_cast<long>(o.samples), o.numbers.c_str());
    std::printf("  %-6s %-8s %12s %12s %12s %10s\n", "format", "scaling", "scale", "underflow", "saturated", "SQNR");
  }
  for (const NumberFormat& f : number_formats()) {
    if (f.special == NumberFormat::Special::kUnsignedNan) continue;  // scales, not numbers
    for (const bool scaled : {false, true}) {
      const double scale = scaled ? amax_scale(f, values) : 1;
      const QuantizationError e = measure_quantization(f, values, scale);
      const char* const how = scaled ? "amax" : "none";
      rows.push_back({{"format", f.name},
                      {"scaling", how},
                      {"scale", scale},
                      {"underflow", e.underflow_share()},
                      {"saturated", e.saturated_share()},
                      {"sqnr_db", number_json(e.sqnr_db())}});
      if (o.json) continue;
      std::printf("  %-6s %-8s %12.5g %10.2f %% %10.2f %% %7.1f dB\n", std::string(f.name).c_str(), how, scale,
                  100 * e.underflow_share(), 100 * e.saturated_share(), e.sqnr_db());
    }
  }
  if (o.json)
    std::fputs(json_result({{"numbers", o.numbers}, {"samples", o.samples}, {"formats", rows}}).c_str(), stdout);
  return 0;
}

}  // namespace

CommandAction setup_precision(CLI::App& app) {
  auto options = std::make_shared<PrecisionOptions>();
  CLI::App* table = app.add_subcommand("table", "every code of a number format and its value");
  table->add_option("FORMAT", options->format, "e4m3, e5m2, e2m1 or e8m0")->required();
  table->add_flag("--json", options->json, "print one JSON object");
  CLI::App* numbers = app.add_subcommand("quantize", "what rounding to each format does to numbers");
  numbers->add_option("NUMBERS", options->numbers, "a distribution, as in normal(0,1e-3)")->required();
  numbers->add_option("--samples", options->samples, "how many")->check(CLI::Range(1, 1 << 26))->capture_default_str();
  numbers->add_option("--seed", options->seed, "of the draw")->capture_default_str();
  numbers->add_flag("--json", options->json, "print one JSON object");
  const std::vector<PrecisionSubcommand> others = {add_precision_recipes(app), add_precision_explain(app)};
  app.require_subcommand(0, 1);
  app.footer(
      "Examples:\n  ranklab precision table e4m3\n  ranklab precision quantize 'normal(0,1e-3)'\n"
      "  ranklab precision recipes deepseek_v3\n  ranklab precision explain --fp8 --module 'layers.*.mlp.*'");
  return [&app, table, numbers, options, others] {
    for (const PrecisionSubcommand& other : others) {
      if (other.app->parsed()) return other.action();
    }
    if (table->parsed()) return print_table(*options);
    if (numbers->parsed()) return quantize(*options);
    std::printf("%s", app.help().c_str());
    return 0;
  };
}

}  // namespace ranklab
