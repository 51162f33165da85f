#include "core/runtime/record/tensorboard.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "core/base/error.h"
#include "core/base/numbers/value_histogram.h"
#include "core/base/text.h"
#include "core/config/settings/fields.h"
#include "core/runtime/record/model_metrics.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;

constexpr std::array<uint32_t, 256> make_crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0u);
    table[i] = crc;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kCrcTable = make_crc_table();

template <typename T>
void put_fixed(std::string& out, T value) {  // little-endian on every host
  for (size_t i = 0; i < sizeof(T); ++i) out += static_cast<char>((value >> (8 * i)) & 0xff);
}

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7f) | 0x80);
  out += static_cast<char>(value);
}

enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void put_tag(std::string& out, uint32_t field, WireType type) { put_varint(out, field << 3 | type); }

void put_bytes(std::string& out, uint32_t field, std::string_view bytes) {
  put_tag(out, field, kBytes);
  put_varint(out, bytes.size());
  out += bytes;
}

std::string begin_event(double wall_time) {
  std::string event;
  put_tag(event, 1, kFixed64);
  put_fixed(event, std::bit_cast<uint64_t>(wall_time));
  return event;
}

std::string frame(const std::string& bytes) {
  std::string record;
  put_fixed(record, static_cast<uint64_t>(bytes.size()));
  put_fixed(record, masked_crc32c(record));
  record += bytes;
  put_fixed(record, masked_crc32c(bytes));
  return record;
}

void put_double(std::string& out, uint32_t field, double value) {
  put_tag(out, field, kFixed64);
  put_fixed(out, std::bit_cast<uint64_t>(value));
}

std::string histogram_bytes(const ValueHistogram& histogram) {
  std::string out, limits, counts;
  put_double(out, 1, histogram.least);
  put_double(out, 2, histogram.most);
  put_double(out, 3, histogram.elements);
  put_double(out, 4, histogram.sum);
  put_double(out, 5, histogram.squares);
  const auto filled = [](double count) { return count > 0; };
  const auto& all = histogram.counts;
  const auto first = std::find_if(all.begin(), all.end(), filled) - all.begin();
  const auto end = all.rend() - std::find_if(all.rbegin(), all.rend(), filled);
  for (int64_t bin = std::max<int64_t>(0, first - 1); bin < end; ++bin) {
    put_fixed(limits, std::bit_cast<uint64_t>(ValueHistogram::limit(bin)));
    put_fixed(counts, std::bit_cast<uint64_t>(all[static_cast<size_t>(bin)]));
  }
  put_bytes(out, 6, limits);
  put_bytes(out, 7, counts);
  return out;
}

std::string event_of_step(double wall_time, int64_t step, uint32_t field, const std::string& content) {
  std::string event = begin_event(wall_time);
  put_tag(event, 2, kVarint);
  put_varint(event, static_cast<uint64_t>(step));
  put_bytes(event, field, content);
  return frame(event);
}

std::string summary_event(double wall_time, int64_t step, const std::string& summary) {
  return event_of_step(wall_time, step, 5, summary);
}

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

// Every setting, by its key.
std::string settings_table(const TrainConfig& config) {
  std::string table = "| setting | value |\n|---|---|\n";
  for (const ConfigField& field : config_fields()) {
    std::string value = field.get(config);
    for (size_t at = 0; (at = value.find('|', at)) != std::string::npos; at += 2) value.insert(at, "\\");
    table += "| " + field.key + " | " + value + " |\n";
  }
  return table;
}

class TensorboardHook : public Hook {
 public:
  explicit TensorboardHook(std::string directory) : directory_(std::move(directory)) {}

  void on_train_begin(const RunPlan& plan, const TrainInfo& info) override {
    char host[256] = "localhost";
    ::gethostname(host, sizeof host - 1);
    const double time = now();
    const std::string name = "events.out.tfevents." + std::to_string(static_cast<int64_t>(time)) + "." + host + "." +
                             std::to_string(::getpid());
    path_ = directory_ + "/" + name + ".0";
    for (int i = 1; fs::exists(path_); ++i) path_ = directory_ + "/" + name + "." + std::to_string(i);
    errno = 0;
    file_.open(path_, std::ios::binary | std::ios::trunc);
    if (!file_.is_open()) refuse(errno);
    append(tensorboard_version_record(time));
    append(tensorboard_start_record(time, info.first_step));
    append(tensorboard_text_record(time, "settings", settings_table(plan.config)));
  }
  void on_step_end(const StepMetrics& m) override {
    std::vector<TensorboardScalar> scalars = {{"loss/train", m.loss},
                                              {"grad/norm", m.grad_norm},
                                              {"optim/lr", m.lr},
                                              {"speed/tokens_per_s", m.tokens_per_s},
                                              {"speed/virtual_step_ms", m.virtual_step_ms},
                                              {"speed/mfu", m.mfu},
                                              {"speed/exposed_comm_fraction", m.exposed_comm_fraction},
                                              {"speed/peer_wait_fraction", m.peer_wait_fraction}};
    for (const ModelMetric& metric : model_metrics(m)) scalars.push_back({metric.tag, metric.value});
    if (m.sentinels)
      for (const SentinelValue& one : m.sentinels->values) scalars.push_back({one.tag, one.value});
    write(tensorboard_scalar_record(now(), m.step, scalars));
    if (m.sentinels && m.sentinels->histograms)
      write(tensorboard_histogram_record(now(), m.step, *m.sentinels->histograms));
  }
  void on_validation(int64_t step, double loss) override {
    const std::array<TensorboardScalar, 1> scalars = {{{"loss/validation", loss}}};
    write(tensorboard_scalar_record(now(), step, scalars));
  }

  void on_train_end(const TrainResult&) override { write({}); }

 private:
  // Without an error, which would end a run that begins: the next write() reports a disk that is full.
  void append(const std::string& record) {
    if (!file_.good()) return;
    errno = 0;
    file_.write(record.data(), static_cast<std::streamsize>(record.size()));
    file_.flush();
    reason_ = errno;
  }
  void write(const std::string& record) {
    append(record);
    if (!file_.good()) refuse(reason_);
  }
  [[noreturn]] void refuse(int reason) const {
    throw Error(ErrorKind::kIo, {.where = "tensorboard",
                                 .what = "cannot write " + quote(path_),
                                 .got = std::strerror(reason),
                                 .fix = "make room; pass a folder you may write to with --tensorboard-dir"});
  }
  std::string directory_;
  int reason_ = 0;  // why the last write failed, if it did
  std::string path_;
  std::ofstream file_;
};

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = 0xffffffffu;
  for (const char c : bytes) crc = (crc >> 8) ^ kCrcTable[(crc ^ static_cast<unsigned char>(c)) & 0xff];
  return ~crc;
}

uint32_t masked_crc32c(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xa282ead8u; }

std::string tensorboard_version_record(double wall_time) {
  std::string event = begin_event(wall_time);
  put_bytes(event, 3, "brain.Event:2");
  return frame(event);
}

std::string tensorboard_start_record(double wall_time, int64_t first_step) {
  std::string session;
  put_tag(session, 1, kVarint);
  put_varint(session, 1);  // SessionLog.START
  return event_of_step(wall_time, first_step, 7, session);
}

std::string tensorboard_scalar_record(double wall_time, int64_t step, std::span<const TensorboardScalar> scalars) {
  std::string summary;
  for (const TensorboardScalar& scalar : scalars) {
    std::string value;
    put_bytes(value, 1, scalar.tag);
    put_tag(value, 2, kFixed32);
    put_fixed(value, std::bit_cast<uint32_t>(static_cast<float>(scalar.value)));
    put_bytes(summary, 1, value);
  }
  return summary_event(wall_time, step, summary);
}

std::string tensorboard_histogram_record(double wall_time, int64_t step, std::span<const ValueHistogram> histograms) {
  std::string summary;
  for (const ValueHistogram& histogram : histograms) {
    std::string value;
    put_bytes(value, 1, histogram.tag);
    put_bytes(value, 5, histogram_bytes(histogram));
    put_bytes(summary, 1, value);
  }
  return summary_event(wall_time, step, summary);
}

std::string tensorboard_text_record(double wall_time, std::string_view tag, std::string_view markdown) {
  std::string dim, shape, tensor, plugin, metadata, value, summary;
  put_tag(dim, 1, kVarint);
  put_varint(dim, 1);
  put_bytes(shape, 2, dim);
  put_tag(tensor, 1, kVarint);
  put_varint(tensor, 7);  // DT_STRING
  put_bytes(tensor, 2, shape);
  put_bytes(tensor, 8, markdown);
  put_bytes(plugin, 1, "text");
  put_bytes(metadata, 1, plugin);
  put_bytes(value, 1, tag);
  put_bytes(value, 8, tensor);
  put_bytes(value, 9, metadata);
  put_bytes(summary, 1, value);
  std::string event = begin_event(wall_time);
  put_bytes(event, 5, summary);
  return frame(event);
}

std::shared_ptr<Hook> make_tensorboard_hook(const std::string& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  RANKLAB_CHECK(!error && fs::is_directory(directory), ErrorKind::kIo, .where = "tensorboard",
                .what = "cannot create folder " + quote(directory),
                .got = error ? error.message() : "a file of that name",
                .fix = "pass a folder you may write to with --tensorboard-dir");
  return std::make_shared<TensorboardHook>(directory);
}

}  // namespace ranklab
