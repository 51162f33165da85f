#include "cli/train/run_record.h"

#include <sched.h>
#include <torch/version.h>

#include <chrono>
#include <ctime>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/common/pipeline_text.h"
#include "cli/common/typed_program.h"
#include "core/base/files/atomic_file.h"
#include "core/base/files/input_file.h"
#include "core/base/shell_quote.h"
#include "core/base/system.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/comm/process_env.h"
#include "core/config/settings/fields.h"
#include "core/runtime/record/run_log.h"

namespace ranklab {
namespace {

using nlohmann::ordered_json;

std::string time_text() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char text[64];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S %z", &local);
  return text;
}

// The text after a name such as "model name\t: " or "PRETTY_NAME=" on its line, without quotes; "" without such a line.
std::string value_after(const std::string& text, const std::string& name, const char* between) {
  size_t at = text.find(name);
  if (at == std::string::npos) return "";
  at = text.find_first_not_of(between, at + name.size());
  if (at == std::string::npos) return "";
  std::string value = text.substr(at, text.find('\n', at) - at);
  std::erase(value, '"');
  return value;
}

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

ordered_json machine_json() {
  ordered_json out = ordered_json::array();
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) out.push_back({name, value});
  };
  add("processor", value_after(read_file_if_any("/proc/cpuinfo"), "model name", "\t: "));
  add("cores", std::to_string(usable_cores()));
  const int64_t memory = system_memory_bytes("MemTotal:");
  if (memory > 0) add("memory", human_bytes(static_cast<double>(memory)));
  add("system", value_after(read_file_if_any("/etc/os-release"), "PRETTY_NAME", "="));
  add("LibTorch", TORCH_VERSION);
  return out;
}

bool is_given(const std::string& origin) { return origin != "default" && !origin.starts_with("preset "); }

ordered_json sound(const std::string& text) { return is_utf8(text) ? text : shown_as_utf8(text); }

class WrittenRunRecord : public RunRecordHook {
 public:
  WrittenRunRecord(std::string path, std::map<std::string, std::string> origins)
      : path_(std::move(path)), origins_(std::move(origins)) {}

  void on_train_begin(const RunPlan& plan, const TrainInfo& info) override {
    const TrainConfig& config = plan.config;
    const bool simulated = config.can(Capability::kVirtualTime) && config.virtual_time;
    record_ = {{"schema", 1},
               {"version", RANKLAB_VERSION},
               {"began", time_text()},
               {"command", sound(typed_command())},
               {"again", sound(has_other_sources() ? flags_command(config, origins_) : "")},
               {"title", sound(run_title(plan))},
               {"layout", layout_text(plan, true)},
               {"world", sound(info.world)},
               {"profile", sound(simulated ? plan.profile.title : "")},
               {"data", sound(info.data)},
               {"loaded", sound(info.loaded)},
               {"ranks", plan.mesh.world_size()},
               {"parameters", info.parameters},
               {"first_step", info.first_step},
               {"settings", ordered_json::array()},
               {"machine", machine_json()},
               {"outcome", nullptr}};
    for (const ConfigField& field : config_fields()) {
      const auto origin = origins_.find(field.key);
      record_["settings"].push_back(
          {field.key, sound(field.get(config)), sound(origin == origins_.end() ? "default" : origin->second)});
    }
  }
  // Written only now, because a file that cannot be written must not end the run; only its exit code reports this.
  void on_step_begin(int64_t step) override {
    step_ = step;
    if (!written_) write();
  }
  void on_error(const std::string& error) override {
    if (!written_) return;
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - began_;
    record_["outcome"] = {{"steps_done", step_}, {"seconds", spent.count()}, {"interrupted", false},
                          {"stopped", ""},       {"error", sound(error)},    {"failed_step", step_}};
    write();
  }
  void on_train_end(const TrainResult& result) override {
    record_["outcome"] = {{"steps_done", result.steps_done},
                          {"seconds", result.total_wall_s},
                          {"interrupted", result.interrupted},
                          {"stopped", sound(result.stopped)}};
    write();
  }

 private:
  bool has_other_sources() const {
    for (const auto& [key, origin] : origins_)
      if (is_given(origin) && !origin.starts_with("flag ")) return true;
    return false;
  }
  void write() {
    written_ = true;  // written, or reported that it cannot be
    write_file_atomically(path_, record_.dump() + "\n",
                          {.where = "log",
                           .what = "cannot write the run's record",
                           .fix = "make room; pass another folder with --log-dir"});
  }
  std::string path_;
  std::map<std::string, std::string> origins_;
  ordered_json record_;
  bool written_ = false;
  int64_t step_ = -1;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

}  // namespace

std::string typed_command() {
  std::vector<std::string> words;
  const std::string line = read_file_if_any("/proc/self/cmdline");
  for (size_t begin = 0; begin < line.size(); begin = line.find('\0', begin) + 1)
    words.emplace_back(line.c_str() + begin);
  const ProcessEnv env = read_process_env();
  // If this is one of several processes, its command line is not the one that the user typed; on one host `launch`
  // starts the same run.
  const bool launched = env.world_size > 1 && env.one_host() && words.size() > 1 && words[1] == "train";
  if (launched) words[1] = "launch --nproc-per-node " + std::to_string(env.world_size);
  std::string out = typed_program();
  for (size_t i = 1; i < words.size(); ++i) out += " " + (launched && i == 1 ? words[i] : shell_word(words[i]));
  return env.world_size > 1 && !launched ? out + "  # one of " + std::to_string(env.world_size) + " processes" : out;
}

std::string flags_command(const TrainConfig& config, const std::map<std::string, std::string>& origins) {
  std::string out = typed_program() + " train";
  for (const ConfigField& field : config_fields()) {
    const auto origin = origins.find(field.key);
    if (origin == origins.end() || !is_given(origin->second)) continue;
    const std::string value = field.get(config);
    if (field.flags.empty())
      out += " --set " + shell_word(field.key + "=" + value);
    else if (field.kind == ConfigField::Kind::kFlag)
      out += value == "true" ? " " + field.flags[0] : " --no-" + field.flags[0].substr(2);
    else
      out += " " + field.flags[0] + " " + shell_word(value);
  }
  return out;
}

std::shared_ptr<RunRecordHook> make_run_record_hook(const std::string& directory,
                                                    std::map<std::string, std::string> origins) {
  make_log_folder(directory);
  return std::make_shared<WrittenRunRecord>(directory + "/run.json", std::move(origins));
}

}  // namespace ranklab
