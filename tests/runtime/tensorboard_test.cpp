#include "core/runtime/tensorboard.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <bit>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "core/base/error.h"
#include "tests/runtime/tiny_run.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;

// A reader of its own: it shares only the checksum with the writer, and that has known answers below.
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
  std::map<std::string, float> scalars;
};

void parse_summary(std::string_view text, LoggedEvent& event) {
  for (Reader summary{text}; !summary.left.empty();) {
    EXPECT_EQ(summary.varint(), 1u << 3 | 2u);
    Reader value{summary.bytes(summary.varint())};
    EXPECT_EQ(value.varint(), 1u << 3 | 2u);
    const std::string tag(value.bytes(value.varint()));
    EXPECT_EQ(value.varint(), 2u << 3 | 5u);
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
  ASSERT_EQ(events.size(), 4u);  // version, two steps, one validation
  EXPECT_EQ(events[0].version, "brain.Event:2");
  EXPECT_GT(events[0].wall_time, 1.6e9);
  const StepMetrics& second = recorded_->steps.at(1);
  EXPECT_EQ(events[2].step, 1);
  const std::map<std::string, double> want = {{"loss", second.loss},
                                              {"grad_norm", second.grad_norm},
                                              {"lr", second.lr},
                                              {"tokens_per_s", second.tokens_per_s},
                                              {"virtual_step_ms", second.virtual_step_ms},
                                              {"mfu", second.mfu},
                                              {"exposed_comm_fraction", second.exposed_comm_fraction}};
  EXPECT_EQ(events[2].scalars.size(), want.size());
  for (const auto& [tag, value] : want) EXPECT_EQ(events[2].scalars.at(tag), static_cast<float>(value)) << tag;
  EXPECT_EQ(events[3].scalars.at("validation_loss"), static_cast<float>(recorded_->validation_losses.at(0)));
}

TEST_F(TensorboardRun, TensorboardsOwnReaderAgrees) {
  if (std::system("python3 -c 'import tensorboard' 2>/dev/null") != 0)
    GTEST_SKIP() << "python3 has no tensorboard package (pip install tensorboard)";
  const std::string script =
      "import sys\n"
      "from tensorboard.backend.event_processing.event_accumulator import EventAccumulator\n"
      "a = EventAccumulator(sys.argv[1]); a.Reload()\n"
      "loss = a.Scalars('loss')\n"
      "assert [e.step for e in loss] == [0, 1], loss\n"
      "assert abs(loss[1].value - float(sys.argv[2])) < 1e-5, loss\n"
      "assert len(a.Scalars('validation_loss')) == 1\n"
      "assert len(a.Tags()['scalars']) == 8, a.Tags()\n";
  const fs::path file = directory_.string() + ".py";
  std::ofstream(file) << script;
  const std::string command =
      "python3 " + file.string() + " " + directory_.string() + " " + std::to_string(recorded_->steps.at(1).loss);
  EXPECT_EQ(std::system(command.c_str()), 0);
  fs::remove(file);
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
