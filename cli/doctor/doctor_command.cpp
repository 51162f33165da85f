// `ranklab doctor`: what is installed, what is missing, and the command that fixes it.
#include <array>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/common/command.h"
#include "cli/common/command_line.h"
#include "cli/common/json_output.h"
#include "cli/common/style.h"
#include "cli/doctor/doctor_checks.h"
#include "core/base/error.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

using Status = DoctorLine::Status;

struct Section {
  const char* title;
  std::vector<DoctorLine (*)()> checks;
};

const std::vector<Section>& sections() {
  static const std::vector<Section> kSections = {
      {"simulation", {check_program, check_libtorch, check_gloo, check_corpus}},
      {"machine",
       {check_cores, check_memory_available, check_open_files, check_threads, check_shared_memory, check_launcher}},
      {"building", {check_compiler, check_cmake, check_ninja, check_ccache, check_clang}},
      {"GPUs", {check_gpus, check_cuda_toolkit, check_nccl, check_cuda_module, check_gpu_proof}},
      {"windows", {check_opengl, check_display, check_fonts}},
  };
  return kSections;
}

const char* word(Status status) {
  switch (status) {
    case Status::kOk:
      return "ok";
    case Status::kWarn:
      return "warn";
    case Status::kMissing:
      break;
  }
  return "missing";
}

std::string colored(const DoctorLine& line, const Style& style) {
  const std::string text = strprintf("%-7s", word(line.status));
  if (line.status == Status::kOk) return style.green(text);
  if (line.status == Status::kWarn) return style.yellow(text);
  return line.required ? style.red(text) : style.yellow(text);
}

bool fails(const DoctorLine& line) { return line.required && line.status == Status::kMissing; }

void print_line(const DoctorLine& line, const Style& style) {
  std::printf("  %s  %-13s %s", colored(line, style).c_str(), line.what.c_str(), line.value.c_str());
  if (!line.fix.empty()) std::printf("%s", style.cyan("  do: " + line.fix).c_str());
  std::printf("\n");
}

int doctor_text() {
  const Style style = style_for(stdout);
  int failures = 0;
  for (const Section& section : sections()) {
    std::printf("%s\n", style.bold(section.title).c_str());
    for (const auto check : section.checks) {
      const DoctorLine line = check();
      failures += fails(line) ? 1 : 0;
      print_line(line, style);
    }
  }
  std::printf("\n%s\n", failures == 0 ? style.green("ready: ./ranklab train").c_str()
                                      : style.red("not ready: see the lines above that say missing").c_str());
  return failures == 0 ? 0 : exit_code(ErrorKind::kEnvironment);
}

int doctor_json() {
  nlohmann::ordered_json checks = nlohmann::ordered_json::array();
  std::vector<std::string> warnings;
  bool ready = true;
  for (const Section& section : sections()) {
    for (const auto check : section.checks) {
      const DoctorLine line = check();
      ready = ready && !fails(line);
      if (line.status == Status::kWarn) warnings.push_back(line.what + ": " + line.value);
      checks.push_back({{"section", section.title},
                        {"what", line.what},
                        {"status", word(line.status)},
                        {"value", line.value},
                        {"fix", line.fix},
                        {"required", line.required}});
    }
  }
  std::printf("%s", json_result({{"ready", ready}, {"checks", checks}}, warnings).c_str());
  return ready ? 0 : exit_code(ErrorKind::kEnvironment);
}

}  // namespace

CommandAction setup_doctor(CommandLine& app) {
  auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "print one JSON object");
  app.footer(
      "Exit code 0 when simulation works here, 3 when something that it needs is missing.\n"
      "Examples:\n  ranklab doctor\n  ranklab doctor --json");
  return [json] { return *json ? doctor_json() : doctor_text(); };
}

}  // namespace ranklab
