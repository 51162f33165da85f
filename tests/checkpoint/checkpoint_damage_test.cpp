// Whatever happens to a checkpoint's bytes, names or files, reading it reports the damage; and no failing system call
// during a save removes an older checkpoint.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <map>
#include <random>
#include <set>

#include "core/checkpoint/manifest_hash.h"
#include "tests/base/faulty_file_calls.h"
#include "tests/checkpoint/checkpoint_files.h"

namespace ranklab::checkpoint_samples {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

class CheckpointDamageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    make_run_folder(run_);
    folder_ = save_two_ranks(run_, 40, 100);
  }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::vector<std::string> files() const {
    return {kManifestName, kTokenizerName, "rank_00000.safetensors", "rank_00001.safetensors"};
  }

  // The manifest's text with this replaced and its hash recomputed.
  void edit_manifest(const std::string& from, const std::string& to) {
    std::string text = bytes_of(path(kManifestName));
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    put_sealed(text);
  }
  void put_sealed(std::string text) {
    text.replace(text.size() - kHashTail, kHashDigits, xxh3_text(manifest_hash(text)));
    put_bytes(path(kManifestName), text);
  }

  const std::string run_ = temporary_path("ranklab_checkpoint_damage");
  std::string folder_;
};

TEST_F(CheckpointDamageTest, EveryFlippedBitIsSeen) {
  uint64_t flips = 0;
  for (const std::string& name : files()) {
    const std::string good = bytes_of(path(name));
    for (size_t bit = 0; bit < 8 * good.size(); ++bit) {
      std::string bad = good;
      bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
      put_bytes(path(name), bad);
      ASSERT_THAT(checkpoint_refusal(folder_), HasSubstr(name)) << "bit " << bit;
      ++flips;
    }
    put_bytes(path(name), good);
  }
  EXPECT_GE(flips, 10'000U);
  EXPECT_EQ(checkpoint_refusal(folder_), "");
}

TEST_F(CheckpointDamageTest, EveryTruncationIsSeen) {
  for (const std::string& name : files()) {
    const std::string good = bytes_of(path(name));
    for (size_t size = 0; size < good.size(); ++size) {
      put_bytes(path(name), good.substr(0, size));
      ASSERT_THAT(checkpoint_refusal(folder_), HasSubstr(name)) << size << " bytes";
    }
    put_bytes(path(name), good + " ");
    EXPECT_THAT(checkpoint_refusal(folder_), HasSubstr(name));
    put_bytes(path(name), good);
  }
}

TEST_F(CheckpointDamageTest, DamagedBytesAreNamedByFileTensorAndPlace) {
  std::string bytes = bytes_of(path("rank_00001.safetensors"));
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  put_bytes(path("rank_00001.safetensors"), bytes);
  const std::string refusal = checkpoint_refusal(folder_);
  EXPECT_THAT(refusal, HasSubstr("rank_00001.safetensors"));
  EXPECT_THAT(refusal, HasSubstr("tensor 'weight/w': bytes 0 to 24"));
  const Checkpoint checkpoint(folder_);  // opening does not read them; reading does
  EXPECT_THROW(checkpoint.read("weight/w"), Error);
  EXPECT_EQ(read_floats(checkpoint, "exp_avg/w"), values_from(0, 12));
}

TEST_F(CheckpointDamageTest, SwappedAndMissingFilesAreSeen) {
  fs::rename(path("rank_00000.safetensors"), path("kept"));
  EXPECT_THAT(checkpoint_refusal(folder_), HasSubstr("rank_00000.safetensors"));
  fs::copy(path("rank_00001.safetensors"), path("rank_00000.safetensors"));
  EXPECT_THAT(checkpoint_refusal(folder_), HasSubstr("rank_00000.safetensors"));
  fs::remove(path("rank_00000.safetensors"));
  fs::create_symlink("kept", path("rank_00000.safetensors"));
  EXPECT_THAT(checkpoint_refusal(folder_), HasSubstr("symbolic link"));
  // The same file of another step: complete and of the same size, but not the one that the manifest names.
  fs::remove(path("rank_00000.safetensors"));
  const std::string other = save_two_ranks(run_, 41, 7);
  fs::copy(other + "/rank_00000.safetensors", path("rank_00000.safetensors"));
  EXPECT_THAT(checkpoint_refusal(folder_), HasSubstr("not the file that its manifest names"));
}

TEST_F(CheckpointDamageTest, WhoeverWritesManifestsOnPurposeStaysInTheFolder) {
  const std::string good = bytes_of(path(kManifestName));
  const std::string shard = "rank_00000.safetensors";
  fs::copy(path(shard), run_ + "/" + shard);
  const std::vector<std::string> names = {
      "../" + shard, run_ + "/" + shard, "./" + shard, ".",     "..",       "", ".hidden",
      "a/b",         "a\\\\b",           "r\\u0000x",  "r\\nx", "r\\u202ex"};
  for (const std::string& name : names) {
    std::string text = good;
    for (size_t at = 0; (at = text.find("\"" + shard + "\"", at)) != std::string::npos; ++at)
      text.replace(at, shard.size() + 2, "\"" + name + "\"");
    put_sealed(text);
    EXPECT_THAT(checkpoint_refusal(folder_), HasSubstr("a file's name is not plain")) << name;
  }
}

TEST_F(CheckpointDamageTest, ContradictionsAreNamed) {
  const std::string good = bytes_of(path(kManifestName));
  struct Edit {
    std::string from, to, words;
  };
  const std::vector<Edit> edits = {{"\"format_version\":2", "\"format_version\":3", "version"},
                                   {"\"ranklab checkpoint\"", "\"a recipe\"", "not a manifest of a checkpoint"},
                                   {"\"step\":40", "\"step\":-1", "step is negative"},
                                   {"\"step\":40", "\"step\":4e1", "step has the wrong type"},
                                   {"\"step\":40", "\"step\":99999999999999999999", "step"},
                                   {"\"updates\":40", "\"step\":40", "key appears twice"},
                                   {"\"updates\":40", "\"up\":40", "updates is missing"},
                                   {"\"shape\":[4,3]", "\"shape\":[4,5]", "do not cover it exactly"},
                                   {"\"shape\":[4,3]", "\"shape\":[4,-3]", "slice is invalid"},
                                   {"\"shape\":[4,3]", "\"shape\":[4611686018427387904,3]", "slice is invalid"},
                                   {"\"dtype\":\"F32\"", "\"dtype\":\"I32\"", "not what the manifest says"},
                                   {"\"dtype\":\"F32\"", "\"dtype\":\"F33\"", "type is unknown"},
                                   {"\"key\":\"weight/w\"", "\"key\":\"weight/v\"", "no tensor 'weight/v'"},
                                   {"\"ranges\":[[0,2]]", "\"ranges\":[[2,4]]", "do not cover it exactly"},
                                   {"\"ranges\":[[2,4]]", "\"ranges\":[[1,3]]", "held twice"},
                                   {"\"ranges\":[[0,2]]", "\"ranges\":[3]", "range has the wrong type"},
                                   {"\"ranges\":[[0,2]]", "\"ranges\":[[[0,2]]]", "nested too deep"},
                                   {"\"key\":\"weight/w\"", "\"key\":\"exp_avg/w\"", "one stored tensor is used twice"},
                                   {"\"dim\":0", "\"dim\":7", "slice is invalid"},
                                   {"\"config\":{\"k\":\"v\"}", "\"config\":{\"k\":1}", "config"},
                                   {"\"weight/b\"", "\"weight\\nb\"", "control character"}};
  for (const Edit& edit : edits) {
    put_bytes(path(kManifestName), good);
    edit_manifest(edit.from, edit.to);
    EXPECT_THAT(checkpoint_refusal(folder_), HasSubstr(edit.words)) << edit.to;
  }
  put_sealed(std::string(100'000, '[') + "\"xxh3\":\"0123456789abcdef\"}\n");
  EXPECT_THAT(checkpoint_refusal(folder_), HasSubstr("nested too deep"));
}

// All calls but the n-th succeed; half of a write that fails is done.
class FaultyFolderCalls : public FaultyCalls {
 public:
  using FaultyCalls::FaultyCalls;
  int make_folder(const char* path, int mode) override {
    return fails("make_folder") ? -1 : FileCalls::make_folder(path, mode);
  }
  int remove_folder(const char* path) override { return fails("remove_folder") ? -1 : FileCalls::remove_folder(path); }
  int exchange(const char* a, const char* b) override { return fails("exchange") ? -1 : FileCalls::exchange(a, b); }
};

// The checkpoint of `step` exists or does not; the one before it exists in any case.
void check_after(const std::string& run, int64_t step, float before, float after, const std::string& call) {
  EXPECT_EQ(read_floats(Checkpoint(run + "/step_00000010"), "weight/w"), values_from(1, 12)) << call;
  for (const StepFolder& folder : step_folders(run)) {
    ASSERT_EQ(checkpoint_refusal(folder.path), "") << call;
    if (folder.step != step) continue;
    const float first = read_floats(Checkpoint(folder.path), "weight/w")[0];
    EXPECT_TRUE(first == before || first == after) << call << ": " << first;
  }
}

class FailingCalls : public ::testing::TestWithParam<int> {};

TEST_P(FailingCalls, LoseNothingAndLeaveNothing) {
  std::set<std::string> failed;
  for (const bool replaces : {false, true}) {
    for (int n = 0;; ++n) {
      ASSERT_LT(n, 1000);
      const std::string run = temporary_path("ranklab_failing_" + std::to_string(n) + (replaces ? "r" : "n"));
      make_run_folder(run);
      save_two_ranks(run, 10, 1);
      if (replaces) save_two_ranks(run, 20, 2);
      FaultyFolderCalls calls(n, GetParam());
      bool thrown = false;
      try {
        save_two_ranks(run, 20, 3, calls);
        prune(run, 20, 2, calls);
      } catch (const Error& error) {
        thrown = true;
        EXPECT_EQ(error.kind(), ErrorKind::kIo) << error.what();
        EXPECT_THAT(error.what(), HasSubstr(run));
      }
      failed.insert(calls.failed());
      check_after(run, 20, 2, 3, calls.failed());
      remove_leftovers(run);  // the next run's start
      for (const auto& entry : fs::directory_iterator(run)) EXPECT_THAT(entry.path().filename(), Not(HasSubstr(".")));
      fs::remove_all(run);
      if (calls.made() <= n) {
        EXPECT_FALSE(thrown);
        break;
      }
    }
  }
  EXPECT_EQ(failed, (std::set<std::string>{"", "open", "seek", "write", "sync", "close", "rename", "unlink",
                                           "make_folder", "remove_folder", "exchange"}));
}
INSTANTIATE_TEST_SUITE_P(Reasons, FailingCalls, ::testing::Values(ENOSPC, EIO));

// What is not on the disk yet: files written since their last sync, and names changed since their folder's last sync.
class PowerCalls : public FileCalls {
 public:
  std::vector<std::string> names;     // given by rename and exchange, in order
  std::vector<std::string> dangling;  // what such a name would have lost
  const std::set<std::string>& unsynced() const { return unsynced_; }

  int open(const char* path, int flags, int mode) override {
    const int fd = FileCalls::open(path, flags, mode);
    if (fd >= 0) open_[fd] = path;
    return fd;
  }
  ssize_t write(int fd, const void* bytes, size_t size) override {
    unsynced_.insert(open_.at(fd));
    return FileCalls::write(fd, bytes, size);
  }
  int sync(int fd) override {
    unsynced_.erase(open_.at(fd));
    return FileCalls::sync(fd);
  }
  int rename(const char* from, const char* to) override {
    named(from, to);
    return FileCalls::rename(from, to);
  }
  int exchange(const char* a, const char* b) override {
    named(a, b);
    return FileCalls::exchange(a, b);
  }

 private:
  void named(const std::string& from, const std::string& to) {
    names.push_back(fs::path(to).filename());
    for (const std::string& path : unsynced_) {
      if (path == from || path.starts_with(from + "/")) dangling.push_back(path);
    }
    if (unsynced_.contains(from)) dangling.push_back("the names in " + from);
    unsynced_.insert(fs::path(to).parent_path());
  }
  std::map<int, std::string> open_;
  std::set<std::string> unsynced_;
};

TEST(PowerLoss, NoNameIsGivenToWhatIsNotOnTheDisk) {
  const std::string run = temporary_path("ranklab_power");
  make_run_folder(run);
  for (int time = 0; time < 2; ++time) {
    PowerCalls calls;
    save_two_ranks(run, 5, 1, calls);
    EXPECT_THAT(calls.dangling, ::testing::IsEmpty());
    EXPECT_THAT(calls.unsynced(), ::testing::IsEmpty());
    const std::vector<std::string> want = {"rank_00000.safetensors", "rank_00001.safetensors", kTokenizerName,
                                           kManifestName, "step_00000005"};
    ASSERT_GE(calls.names.size(), want.size());
    EXPECT_EQ(std::vector<std::string>(calls.names.begin(), calls.names.begin() + 5), want);
    EXPECT_EQ(calls.names.back(), "latest");
  }
}

TEST(HesitantDisk, ChangesNothing) {
  const std::string run = temporary_path("ranklab_hesitant");
  make_run_folder(run);
  HesitantCalls calls;
  EXPECT_EQ(checkpoint_refusal(save_two_ranks(run, 1, 5, calls)), "");
}

}  // namespace
}  // namespace ranklab::checkpoint_samples
