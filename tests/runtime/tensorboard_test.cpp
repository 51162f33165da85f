#include "core/runtime/record/tensorboard.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <bit>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "core/base/error.h"
#include "core/base/numbers/value_histogram.h"
#include "core/runtime/record/model_metrics.h"
#include "tests/cli/run_program.h"
#include "tests/runtime/tiny_run.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;

// An independent reader: it shares only the checksum with the writer, which has known answers below.
struct Reader {
  std::string_view left;
  uint64_t fixed(size_t bytes) {
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; ++i)
      value |= static_cast<uint64_t>(static_cast<unsigned char>(left.at(i))) << (8 * i);
    left.remove_prefix(bytes);
    return value;
  }
  uint64_t varint() {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const uint64_t byte = fixed(1);
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  }
  std::string_view bytes(size_t count) {
    const std::string_view taken = left.substr(0, count);
    EXPECT_EQ(taken.size(), count) << "cut off";
    left.remove_prefix(taken.size());
    return taken;
  }
};

struct LoggedEvent {
  double wall_time = 0;
  int64_t step = 0;
  std::string version;
  bool starts = false;
  std::map<std::string, float> scalars;
  std::map<std::string, std::string> texts;
  std::map<std::string, std::vector<std::vector<double>>> histograms;  // by field, from 1
};

// The bytes of field `number` of a message; "" if it has none.
std::string_view field_of(std::string_view message, uint64_t number) {
  for (Reader in{message}; !in.left.empty();) {
    const uint64_t tag = in.varint();
    if ((tag & 7) == 0) {
      in.varint();
      continue;
    }
    EXPECT_EQ(tag & 7, 2u);
    const std::string_view bytes = in.bytes(in.varint());
    if (tag >> 3 == number) return bytes;
  }
  return {};
}

std::vector<double> doubles_of(std::string_view bytes) {
  std::vector<double> values;
  for (Reader in{bytes}; !in.left.empty();) values.push_back(std::bit_cast<double>(in.fixed(8)));
  return values;
}

std::vector<std::vector<double>> parse_histogram(std::string_view bytes) {
  std::vector<std::vector<double>> fields(7);
  for (Reader in{bytes}; !in.left.empty();) {
    const uint64_t tag = in.varint();
    const bool packed = (tag & 7) == 2;
    EXPECT_EQ(packed, tag >> 3 >= 6);
    fields.at((tag >> 3) - 1) = doubles_of(in.bytes(packed ? in.varint() : 8));
  }
  return fields;
}

void parse_summary(std::string_view text, LoggedEvent& event) {
  for (Reader summary{text}; !summary.left.empty();) {
    EXPECT_EQ(summary.varint(), 1u << 3 | 2u);
    Reader value{summary.bytes(summary.varint())};
    EXPECT_EQ(value.varint(), 1u << 3 | 2u);
    const std::string tag(value.bytes(value.varint()));
    const uint64_t kind = value.varint();
    if (kind == (8u << 3 | 2u)) {
      event.texts[tag] = field_of(value.bytes(value.varint()), 8);
      EXPECT_EQ(value.varint(), 9u << 3 | 2u);
      EXPECT_EQ(field_of(field_of(value.bytes(value.varint()), 1), 1), "text");
      continue;
    }
    if (kind == (5u << 3 | 2u)) {
      event.histograms[tag] = parse_histogram(value.bytes(value.varint()));
      continue;
    }
    EXPECT_EQ(kind, 2u << 3 | 5u);
    event.scalars[tag] = std::bit_cast<float>(static_cast<uint32_t>(value.fixed(4)));
    EXPECT_TRUE(value.left.empty());
  }
}

LoggedEvent parse_event(std::string_view text) {
  LoggedEvent event;
  for (Reader in{text}; !in.left.empty();) {
    switch (in.varint()) {
      case 1 << 3 | 1:
        event.wall_time = std::bit_cast<double>(in.fixed(8));
        break;
      case 2 << 3 | 0:
        event.step = static_cast<int64_t>(in.varint());
        break;
      case 3 << 3 | 2:
        event.version = in.bytes(in.varint());
        break;
      case 5 << 3 | 2:
        parse_summary(in.bytes(in.varint()), event);
        break;
      case 7 << 3 | 2:
        event.starts = in.bytes(in.varint()) == "\x08\x01";  // SessionLog {status: START}
        break;
      default:
        ADD_FAILURE() << "unknown field";
        return event;
    }
  }
  return event;
}

std::vector<LoggedEvent> parse_file(std::string_view text) {
  std::vector<LoggedEvent> events;
  for (Reader in{text}; !in.left.empty();) {
    const std::string_view length = in.left.substr(0, 8);
    const uint64_t size = in.fixed(8);
    EXPECT_EQ(in.fixed(4), masked_crc32c(length));
    const std::string_view bytes = in.bytes(size);
    EXPECT_EQ(in.fixed(4), masked_crc32c(bytes));
    events.push_back(parse_event(bytes));
  }
  return events;
}

TEST(Tensorboard, Crc32cKnownAnswers) {  // RFC 3720 appendix B.4
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(masked_crc32c(""), 0xa282ead8u);
}

TEST(Tensorboard, ARecordIsExactlyTheseBytes) {
  const std::string record = tensorboard_version_record(1.5);
  const std::string event(
      "\x09\0\0\0\0\0\0\xf8\x3f\x1a\x0d"
      "brain.Event:2",
      24);
  EXPECT_EQ(record.size(), 8 + 4 + event.size() + 4);
  EXPECT_EQ(record.substr(12, event.size()), event);
  EXPECT_EQ(record.substr(0, 8), std::string("\x18\0\0\0\0\0\0\0", 8));
}

TEST(Tensorboard, LargeStepsNeedSeveralVarintBytes) {
  const TensorboardScalar scalar{"x", -0.25};
  const LoggedEvent event = parse_file(tensorboard_scalar_record(2.0, 123456789012, {&scalar, 1})).at(0);
  EXPECT_EQ(event.step, 123456789012);
  EXPECT_EQ(event.scalars.at("x"), -0.25f);
  EXPECT_EQ(event.wall_time, 2.0);
}

TEST(Tensorboard, AHistogramHasItsBinsAndOneBeforeThem) {
  ValueHistogram one{.tag = "weights_hist/w", .least = -1.1, .most = 0.8, .elements = 5, .sum = 2, .squares = 3};
  one.counts.assign(ValueHistogram::kBins, 0);
  const auto zero = static_cast<size_t>(ValueHistogram::kMagnitudes);
  one.counts[zero - 129] = 2;  // -1.25 to -1
  one.counts[zero] = 1;
  one.counts[zero + 127] = 2;  // 0.75 to 0.875
  const LoggedEvent event = parse_file(tensorboard_histogram_record(2.0, 7, {&one, 1})).at(0);
  EXPECT_EQ(event.step, 7);
  const auto& fields = event.histograms.at("weights_hist/w");
  EXPECT_EQ(fields[0], std::vector<double>{-1.1});
  EXPECT_EQ(fields[1], std::vector<double>{0.8});
  EXPECT_EQ(fields[2], std::vector<double>{5});
  EXPECT_EQ(fields[3], std::vector<double>{2});
  EXPECT_EQ(fields[4], std::vector<double>{3});
  const std::vector<double>&limits = fields[5], &counts = fields[6];
  ASSERT_EQ(limits.size(), 258u);
  ASSERT_EQ(counts.size(), 258u);
  EXPECT_EQ(limits[0], -1.25);
  EXPECT_EQ(limits[1], -1);
  EXPECT_EQ(limits[257], 0.875);
  EXPECT_EQ(counts[0], 0);
  EXPECT_EQ(counts[1], 2);
  EXPECT_EQ(counts[130], 1);
  EXPECT_EQ(counts[257], 2);
}

class TensorboardRun : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::path(testing::TempDir()) / ("ranklab_tensorboard_test" + std::to_string(::getpid()));
    fs::remove_all(directory_);
    TrainConfig config = tiny_config(2, 1);
    config.train_iters = 2;
    config.eval_interval = 2;
    RuntimeEngine engine = tiny_engine(config);
    engine.add_hook(make_tensorboard_hook(directory_.string()));
    recorded_ = std::make_shared<RecordingHook>();
    engine.add_hook(recorded_);
    engine.fit();
  }
  void TearDown() override { fs::remove_all(directory_); }
  fs::path directory_;
  std::shared_ptr<RecordingHook> recorded_;
};

TEST_F(TensorboardRun, HoldsEveryStepAndValidation) {
  const fs::path file = fs::directory_iterator(directory_)->path();
  EXPECT_EQ(file.filename().string().rfind("events.out.tfevents.", 0), 0u);
  std::ifstream in(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const std::vector<LoggedEvent> events = parse_file(text);
  ASSERT_EQ(events.size(), 6u);  // version, start, settings, two steps, one validation
  EXPECT_EQ(events[0].version, "brain.Event:2");
  EXPECT_GT(events[0].wall_time, 1.6e9);
  const StepMetrics& second = recorded_->steps.at(1);
  EXPECT_TRUE(events[1].starts);
  EXPECT_EQ(events[1].step, 0);
  EXPECT_NE(events[2].texts.at("settings").find("| parallel.tp | 1 |\n"), std::string::npos);
  EXPECT_EQ(events[4].step, 1);
  std::map<std::string, double> want = {{"loss/train", second.loss},
                                        {"grad/norm", second.grad_norm},
                                        {"optim/lr", second.lr},
                                        {"speed/tokens_per_s", second.tokens_per_s},
                                        {"speed/virtual_step_ms", second.virtual_step_ms},
                                        {"speed/mfu", second.mfu},
                                        {"speed/exposed_comm_fraction", second.exposed_comm_fraction},
                                        {"speed/peer_wait_fraction", second.peer_wait_fraction}};
  for (const ModelMetric& metric : model_metrics(second)) want[metric.tag] = metric.value;
  EXPECT_EQ(events[4].scalars.size(), want.size());
  for (const auto& [tag, value] : want) EXPECT_EQ(events[4].scalars.at(tag), static_cast<float>(value)) << tag;
  EXPECT_EQ(events[5].scalars.at("loss/validation"), static_cast<float>(recorded_->validation_losses.at(0)));
}

// Reads the files that runs left in the folder as TensorBoard does: a start removes earlier events of its step and
// later.
std::vector<int64_t> shown_steps(const fs::path& directory) {
  std::set<fs::path> files;  // in order of their time
  for (const auto& file : fs::directory_iterator(directory)) files.insert(file.path());
  std::vector<int64_t> steps;
  for (const fs::path& file : files) {
    std::ifstream in(file, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    for (const LoggedEvent& event : parse_file(text)) {
      if (event.starts) std::erase_if(steps, [&](int64_t step) { return step >= event.step; });
      if (event.scalars.contains("loss/train")) steps.push_back(event.step);
    }
  }
  return steps;
}

TEST(Tensorboard, ARunThatGoesOnShowsNoStepTwice) {
  const fs::path directory = temporary_path("ranklab_tensorboard_resumed");
  TrainConfig config = tiny_config(2, 1);
  config.train_iters = 4;
  for (const int64_t first_step : {0, 2}) {  // as after a crash behind step 3, with a checkpoint of step 2
    const RunPlan plan = resolve(config);
    const auto hook = make_tensorboard_hook(directory.string());
    hook->on_train_begin(plan, {.world = {}, .data = {}, .first_step = first_step});
    for (int64_t step = first_step; step < 4; ++step) {
      StepMetrics metrics;
      metrics.step = step;
      hook->on_step_end(metrics);
    }
  }
  EXPECT_EQ(shown_steps(directory), (std::vector<int64_t>{0, 1, 2, 3}));
  fs::remove_all(directory);
}

TEST(Tensorboard, ARunHasHistogramsOfEveryParameter) {
  const fs::path directory = temporary_path("ranklab_tensorboard_histograms");
  TrainConfig config = tiny_config(2, 1);
  config.train_iters = 3;
  config.tensorboard_dir = directory.string();
  config.sentinels = {.mode = SentinelMode::kDebug, .rules = {}, .histogram_interval = 2};
  RuntimeEngine engine = tiny_engine(config);
  engine.add_hook(make_tensorboard_hook(directory.string()));
  engine.fit();
  std::ifstream in(fs::directory_iterator(directory)->path(), std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  std::vector<int64_t> steps;
  for (const LoggedEvent& event : parse_file(text)) {
    if (event.histograms.empty()) continue;
    steps.push_back(event.step);
    const auto& embedding = event.histograms.at("weights_hist/embedding.weight");
    EXPECT_EQ(embedding.at(2).at(0), static_cast<double>(config.model.vocab_size * config.model.hidden_size));
    EXPECT_TRUE(event.histograms.contains("gradients_hist/final_norm.weight"));
  }
  EXPECT_EQ(steps, (std::vector<int64_t>{0, 2}));
  fs::remove_all(directory);
}

// A mixture under a loss scale: what only some runs have is in groups, too.
TEST(Tensorboard, EveryMetricHasAGroup) {
  StepMetrics m;
  m.wall_mfu = m.mtp_loss = m.moe_max_over_mean = m.loss_scale = 1;
  m.max_attention_logit = 1;
  m.peak_memory_bytes = 1;
  const std::vector<ModelMetric> metrics = model_metrics(m);
  EXPECT_EQ(metrics.size(), 12u);
  for (const ModelMetric& metric : metrics) {
    const std::string tag = metric.tag;
    bool grouped = false;
    for (const char* group : {"loss/", "grad/", "speed/", "memory/", "experts/", "attention/"})
      grouped |= tag.starts_with(group);
    EXPECT_TRUE(grouped) << tag;
  }
}

TEST_F(TensorboardRun, TensorboardsOwnReaderAgrees) {
  if (std::system("python3 -c 'import tensorboard' 2>/dev/null") != 0)
    GTEST_SKIP() << "python3 has no tensorboard package (pip install tensorboard)";
  const std::string script =
      "import sys\n"
      "from tensorboard.backend.event_processing.event_accumulator import EventAccumulator\n"
      "a = EventAccumulator(sys.argv[1]); a.Reload()\n"
      "loss = a.Scalars('loss/train')\n"
      "assert [e.step for e in loss] == [0, 1], loss\n"
      "assert abs(loss[1].value - float(sys.argv[2])) < 1e-5, loss\n"
      "assert len(a.Scalars('loss/validation')) == 1\n"
      "assert {t.split('/')[0] for t in a.Tags()['scalars']} >= {'loss', 'grad', 'optim', 'speed'}, a.Tags()\n"
      "text = a.Tensors('settings/text_summary' if 'settings/text_summary' in a.Tags()['tensors'] else 'settings')\n"
      "assert b'| parallel.tp | 1 |' in text[0].tensor_proto.string_val[0], text\n";
  const fs::path file = directory_.string() + ".py";
  std::ofstream(file) << script;
  const std::string command =
      "python3 " + file.string() + " " + directory_.string() + " " + std::to_string(recorded_->steps.at(1).loss);
  EXPECT_EQ(std::system(command.c_str()), 0);
  fs::remove(file);
}

// A file that may not grow stands for a full disk: the run begins, and its first step reports it.
TEST(Tensorboard, AFullDiskDoesNotRefuseTheRun) {
  const fs::path directory = temporary_path("ranklab_tensorboard_full");
  const auto hook = make_tensorboard_hook(directory.string());
  const RunPlan plan = resolve(tiny_config(1, 1));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{.rlim_cur = 1000, .rlim_max = before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &small);
  std::string said = "nothing";
  try {
    hook->on_train_begin(plan, {});
    said = "begun";
    hook->on_step_end({});
  } catch (const Error& error) {
    said += error.kind() == ErrorKind::kIo ? std::string(", ") + error.what() : ", another error";
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_TRUE(said.starts_with("begun, [tensorboard] cannot write ")) << said;
  EXPECT_NE(said.find("File too large"), std::string::npos) << said;
  fs::remove_all(directory);
}

TEST(Tensorboard, AFolderThatCannotBeMadeIsNamed) {
  const std::string file = testing::TempDir() + "/ranklab_tensorboard_not_a_folder" + std::to_string(::getpid());
  std::ofstream(file) << "x";
  try {
    make_tensorboard_hook(file);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kIo);
    EXPECT_NE(std::string(error.what()).find(file), std::string::npos);
  }
  fs::remove(file);
}

}  // namespace
}  // namespace ranklab
