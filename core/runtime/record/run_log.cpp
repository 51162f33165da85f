#include "core/runtime/record/run_log.h"

#include <charconv>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <optional>
#include <system_error>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/files/atomic_file.h"
#include "core/base/files/input_file.h"
#include "core/base/text.h"
#include "core/checkpoint/run_lock.h"
#include "core/runtime/record/line_file.h"
#include "core/runtime/record/model_metrics.h"
#include "core/runtime/record/torch_profile.h"
#include "core/trace/find_trace.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;

int64_t step_of_text(const std::string& line) {
  int64_t step = -1;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), step);
  return error == std::errc() && *end == ' ' ? step : -1;
}

int64_t step_of_json(const std::string& line) {
  const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object()) return -1;
  return json.contains("step") && json["step"].is_number_integer() ? json["step"].get<int64_t>() : -1;
}

// Keeps the lines that an earlier run left in a log file, except those that a run resumed at `first_step` will write
// again, so that the curve of a killed and resumed run has no gap or overlap. Lines without a step (-1), and a last
// line without a newline, are dropped. Without a file, nothing happens. Throws kIo.
void keep_lines_before(const std::string& path, int64_t first_step, int64_t (*step_of)(const std::string& line)) {
  std::error_code none;
  if (!fs::exists(path, none)) return;
  constexpr uint64_t kMostBytes = uint64_t{4} << 30;  // enough for ten million steps
  const std::string text =
      read_whole_file(path, kMostBytes, {.where = "log", .fix = "pass another folder with --log-dir"});
  std::string kept;
  for (size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string line = text.substr(begin, end - begin);
    const int64_t step = step_of(line);
    if (step >= 0 && step < first_step) kept += line + "\n";
  }
  write_file_atomically(path, kept,
                        {.where = "log",
                         .what = "cannot shorten the log of the run that is resumed",
                         .fix = "pass a folder you may write to with --log-dir"});
}

class RunLogHook : public Hook {
 public:
  // Existing files are kept until the run begins, because only then is it known whether it resumes.
  explicit RunLogHook(const std::string& directory)
      : lock_(directory, {.file = "log.lock", .where = "log", .does = "logs into", .option = "--log-dir"}),
        log_path_(directory + "/log.txt"),
        metrics_path_(directory + "/metrics.jsonl"),
        sentinels_path_(directory + "/sentinels.jsonl"),
        trace_path_(directory + "/" + kTraceFileName),
        profile_path_(directory + "/" + kProfileFileName),
        log_(log_path_, LineFile::Begin::kAtEnd),
        metrics_(metrics_path_, LineFile::Begin::kAtEnd) {}

  void on_train_begin(const RunPlan& plan, const TrainInfo& info) override {
    forget_other_run(info.first_step);
    if (plan.config.sentinels.any()) sentinels_.emplace(sentinels_path_, LineFile::Begin::kAtEnd);
    if (info.first_step > 0) {
      keep_lines_before(log_path_, info.first_step, step_of_text);
      keep_lines_before(metrics_path_, info.first_step, step_of_json);
    }
    const auto begin = info.first_step > 0 ? LineFile::Begin::kAtEnd : LineFile::Begin::kEmpty;
    log_ = LineFile(log_path_, begin);
    metrics_ = LineFile(metrics_path_, begin);
  }
  void on_step_end(const StepMetrics& m) override {
    add(std::to_string(m.step) + " train " + strprintf("%.6f", m.loss), metrics_json(m));
    if (!m.sentinels || !sentinels_) return;
    const std::string reason = sentinels_->add(sentinels_json(m.step, *m.sentinels));
    RANKLAB_CHECK(reason.empty(), ErrorKind::kIo, .where = "log", .what = "cannot write the log",
                  .got = quote(sentinels_path_) + ": " + reason,
                  .fix = "make room; pass another folder with --log-dir");
  }
  void on_checkpoint(const CheckpointNote& note) override { add({}, checkpoint_json(note)); }
  void on_validation(int64_t step, double loss) override {
    add(std::to_string(step) + " val " + strprintf("%.6f", loss), validation_json(step, loss));
  }

 private:
  // Removes files that this run may not write itself; otherwise a report on the folder would attribute them to this
  // run.
  void forget_other_run(int64_t first_step) const {
    if (first_step > 0) return keep_lines_before(sentinels_path_, first_step, step_of_json);
    std::error_code gone;
    for (const std::string& path : {sentinels_path_, trace_path_, profile_path_}) fs::remove(path, gone);
  }

  // If one file cannot be written, the other still gets its line.
  void add(const std::string& log_line, const std::string& metrics_line) {
    std::vector<std::string> refused;
    const auto write = [&refused](LineFile& file, const std::string& path, const std::string& line) {
      const std::string reason = line.empty() ? "" : file.add(line);
      if (!reason.empty()) refused.push_back(quote(path) + ": " + reason);
    };
    write(log_, log_path_, log_line);
    write(metrics_, metrics_path_, metrics_line);
    RANKLAB_CHECK(refused.empty(), ErrorKind::kIo, .where = "log", .what = "cannot write the log",
                  .got = join(refused, ", "), .fix = "make room; pass another folder with --log-dir");
  }

  RunLock lock_;  // taken before the files are opened, so that two runs cannot log into one folder
  std::string log_path_, metrics_path_, sentinels_path_, trace_path_, profile_path_;
  LineFile log_, metrics_;
  std::optional<LineFile> sentinels_;  // set for runs with sentinels
};

// Every run becomes "last", wherever it logs; otherwise "last" would silently be an earlier run. The folder runs is not
// created for it: without the folder there is no "last" that could be mistaken for this run.
void link_as_last(const std::string& directory) {
  std::error_code ignored;  // the link is a convenience
  if (!fs::is_directory("runs", ignored) || fs::equivalent(directory, "runs/last", ignored)) return;
  fs::path target = fs::relative(directory, "runs", ignored);
  if (target.empty() || *target.begin() == "..") target = fs::canonical(directory, ignored);
  fs::remove("runs/last", ignored);
  fs::create_directory_symlink(target, "runs/last", ignored);
}

}  // namespace

void make_log_folder(const std::string& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  RANKLAB_CHECK(!error && fs::is_directory(directory), ErrorKind::kIo, .where = "log",
                .what = "cannot create folder " + quote(directory),
                .got = error ? error.message() : "a file of that name",
                .fix = "pass a folder you may write to with --log-dir");
}

std::string metrics_json(const StepMetrics& m) {
  nlohmann::ordered_json line = {{"step", m.step},
                                 {"loss", m.loss},
                                 {"grad_norm", m.grad_norm},
                                 {"lr", m.lr},
                                 {"tokens", m.tokens},
                                 {"tokens_per_s", m.tokens_per_s},
                                 {"step_wall_ms", m.step_wall_ms},
                                 {"virtual_step_ms", m.virtual_step_ms},
                                 {"mfu", m.mfu},
                                 {"exposed_comm_fraction", m.exposed_comm_fraction},
                                 {"peer_wait_fraction", m.peer_wait_fraction}};
  for (const ModelMetric& metric : model_metrics(m)) line[metric.name] = metric.value;
  return line.dump();
}

std::string sentinels_json(int64_t step, const SentinelReport& report) {
  nlohmann::ordered_json values = nlohmann::ordered_json::object(), alarms = nlohmann::ordered_json::array();
  for (const SentinelValue& value : report.values) values[value.tag] = value.value;
  for (const SentinelAlarm& a : report.alarms) {
    alarms.push_back({{"sentinel", a.name},
                      {"tag", a.tag},
                      {"value", a.value},
                      {"level", name(a.level)},
                      {"bounds", a.bounds.text()},
                      {"action", name(a.action)},
                      {"begins", a.begins}});
    if (!a.detail.empty()) alarms.back()["detail"] = a.detail;
  }
  return nlohmann::ordered_json({{"step", step}, {"values", values}, {"fired", alarms}}).dump();
}

std::string validation_json(int64_t step, double loss) {
  return nlohmann::ordered_json({{"step", step}, {"validation_loss", loss}}).dump();
}

std::string checkpoint_json(const CheckpointNote& note) {
  return nlohmann::ordered_json({{"step", note.step - 1},
                                 {"checkpoint", note.step},
                                 {"checkpoint_bytes", note.bytes},
                                 {"checkpoint_stalled_ms", note.stalled_ms},
                                 {"checkpoint_written_ms", note.written_ms}})
      .dump();
}

std::shared_ptr<Hook> make_run_log_hook(const std::string& directory) {
  make_log_folder(directory);
  auto hook = std::make_shared<RunLogHook>(directory);
  link_as_last(directory);
  return hook;
}

std::string default_log_dir() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm local{};
  localtime_r(&now, &local);
  char stamp[32];
  std::strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &local);
  make_log_folder("runs");
  std::string directory = std::string("runs/") + stamp;
  std::error_code error;
  // Creating the folder also reserves it: a run that starts in the same second gets another one.
  for (int i = 2; !fs::create_directory(directory, error) && !error; ++i)
    directory = std::string("runs/") + stamp + "-" + std::to_string(i);
  make_log_folder(directory);
  return directory;
}

}  // namespace ranklab
