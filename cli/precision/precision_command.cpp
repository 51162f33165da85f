// `ranklab precision`: its subcommands, and one of them, `table`, which prints every code of a number format.
// Computation only: no ranks are started.
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/common/command.h"
#include "cli/common/command_line.h"
#include "cli/common/json_output.h"
#include "cli/precision/precision_subcommands.h"
#include "core/base/text.h"
#include "core/precision/number_format.h"

namespace ranklab {
namespace {

using nlohmann::ordered_json;

struct PrecisionOptions {
  std::string format = "e4m3";
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

}  // namespace

CommandAction setup_precision(CommandLine& app) {
  auto options = std::make_shared<PrecisionOptions>();
  CommandLine* table = app.add_subcommand("table", "every code of a number format and its value");
  table->add_option("FORMAT", options->format, "e4m3, e5m2, e2m1 or e8m0")->required();
  table->add_flag("--json", options->json, "print one JSON object");
  const std::vector<PrecisionSubcommand> others = {add_precision_quantize(app), add_precision_recipes(app),
                                                   add_precision_explain(app)};
  app.require_subcommand(0, 1);
  app.footer(
      "Examples:\n  ranklab precision table e4m3\n  ranklab precision quantize 'normal(0,1e-3)'\n"
      "  ranklab precision recipes deepseek_v3\n  ranklab precision explain --fp8 --module 'layers.*.mlp.*'");
  return [&app, table, options, others] {
    for (const PrecisionSubcommand& other : others) {
      if (other.app->parsed()) return other.action();
    }
    if (table->parsed()) return print_table(*options);
    std::printf("%s", app.help().c_str());
    return 0;
  };
}

}  // namespace ranklab
