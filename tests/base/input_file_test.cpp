#include "core/base/files/input_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <regex>

#include "tests/cli/run_program.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

const InputWords kNoteWords = {.where = "--notes", .fix = "give another path"};

std::string refusal(const std::string& path, uint64_t limit_bytes = 100, const InputWords& words = kNoteWords) {
  try {
    read_whole_file(path, limit_bytes, words);
    return "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kIo) << error.what();
    return error.what();
  }
}

class InputFiles : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name) << text;
    return folder_ + "/" + name;
  }
  const std::string folder_ = temporary_path("ranklab_input");
};

TEST_F(InputFiles, AreReadWholeOrInPieces) {
  const std::string path = write("a", "0123456789");
  EXPECT_EQ(read_whole_file(path, 10, kNoteWords), "0123456789");
  EXPECT_EQ(read_whole_file(write("empty", ""), 0, kNoteWords), "");
  InputFile file(path, kNoteWords);
  std::string piece(4, ' ');
  EXPECT_EQ(file.read_some(piece), 4u);
  EXPECT_EQ(file.read_some(piece), 4u);
  EXPECT_EQ(piece, "4567");
  EXPECT_EQ(file.read_some(piece), 2u);
  EXPECT_EQ(file.read_some(piece), 0u);
  EXPECT_EQ(file.read_at(8, piece), 2u);
  fs::create_symlink("a", folder_ + "/link");
  EXPECT_EQ(read_whole_file(folder_ + "/link", 10, kNoteWords), "0123456789");
  // The kernel's files say that they have no bytes.
  EXPECT_THAT(read_file_if_any("/proc/self/status"), HasSubstr("Pid:"));
  EXPECT_EQ(read_file_if_any(folder_ + "/absent"), "");
}

TEST_F(InputFiles, PipesAndDevicesAreRefusedAtOnce) {
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(refusal(pipe), AllOf(HasSubstr("[--notes] "), HasSubstr(pipe), HasSubstr("got a pipe"),
                                   HasSubstr("want a regular file"), HasSubstr("do: give another path")));
  EXPECT_THAT(refusal("/dev/zero"), HasSubstr("got a character device"));
  EXPECT_THAT(refusal(folder_), HasSubstr("got a folder"));
  EXPECT_THAT(refusal(folder_ + "/absent"), HasSubstr("No such file"));
}

TEST_F(InputFiles, TooMuchIsRefusedBeforeItIsRead) {
  const std::string path = write("a", "0123456789");
  EXPECT_THAT(refusal(path, 9), AllOf(HasSubstr("too large"), HasSubstr("10 bytes"), HasSubstr("at most 9 B"),
                                      HasSubstr("do: give a smaller file; give another path")));
  fs::resize_file(path, uintmax_t{1} << 42);  // a hole: no disk is that large
  EXPECT_THAT(refusal(path, 1 << 30), HasSubstr("too large"));
}

TEST_F(InputFiles, LinksAreRefusedWhereTheyMayLeadOut) {
  write("a", "text");
  fs::create_symlink("a", folder_ + "/link");
  EXPECT_THAT(refusal(folder_ + "/link", 100, {.where = "checkpoint", .follow_links = false}),
              HasSubstr("got a symbolic link"));
}

// Files are opened in one place: code that opens files elsewhere would bring the hangs back.
TEST(InputFileDoor, IsTheOnlyOne) {
  const std::regex past(
      R"(ifstream|begin_read_from_file|basic_filebuf|\bfopen\(|\bgzopen\(|\bO_RDONLY\b|\bparse_file\()");
  const std::regex harmless(R"(/dev/null|O_DIRECTORY|^\s*//)");
  for (const char* folder : {"core", "cli", "viz", "lessons", "backends"}) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(RANKLAB_SOURCE_DIR) / folder)) {
      const fs::path& path = entry.path();
      if (path.extension() != ".cpp" && path.extension() != ".h" && path.extension() != ".cu") continue;
      if (path.filename() == "input_file.cpp") continue;
      std::ifstream in(path);
      int number = 0;
      for (std::string line; std::getline(in, line);) {
        ++number;
        if (!std::regex_search(line, past) || std::regex_search(line, harmless)) continue;
        ADD_FAILURE() << path.string() << ":" << number
                      << ": read files through core/base/files/input_file.h: " << line;
      }
    }
  }
}

}  // namespace
}  // namespace ranklab
