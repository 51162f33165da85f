#include "core/data/corpus.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>

#include "core/base/error.h"
#include "core/base/files/input_file.h"
#include "core/base/files/path_type.h"
#include "core/base/numbers/philox.h"
#include "core/base/shell_quote.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/data/megatron_format.h"
#include "core/data/packed_format.h"
#include "core/data/token_input.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;
constexpr const char* kBibleProgram = "/usr/bin/bible";

// The text is held in memory, hence the limit; shards are read on demand, however large they are.
constexpr uint64_t kMostBytes = uint64_t{4} << 30;
constexpr size_t kBeginBytes = 64;  // which tell what a file is

InputWords words_about(const std::string& option) {
  return {.where = "data",
          .fix = "pass a readable text file to " + option +
                 "; of large files make shards: ranklab data prepare FILE --out FOLDER"};
}

std::string read_file(const std::string& path, const std::string& option) {
  std::string text = read_whole_file(path, kMostBytes, words_about(option));
  text.erase(0, byte_order_mark(text));
  RANKLAB_CHECK(!text.empty(), ErrorKind::kBadFile, .where = "data", .what = quote(path) + " is empty",
                .got = "0 bytes", .want = "at least one training sequence of text",
                .fix = "pass another file to " + option);
  require_unpacked(path, std::string_view(text).substr(0, kBeginBytes), option);
  return text;
}

// "Ge1:1 In the beginning ..." -> "In the beginning ..."
std::string without_verse_labels(const std::string& raw) {
  std::string text;
  text.reserve(raw.size());
  size_t begin = 0;
  while (begin < raw.size()) {
    size_t end = raw.find('\n', begin);
    if (end == std::string::npos) end = raw.size();
    const std::string_view line(raw.data() + begin, end - begin);
    const size_t space = line.find(' ');
    const bool labelled = space != std::string_view::npos && line.substr(0, space).find(':') != std::string_view::npos;
    text += labelled ? line.substr(space + 1) : line;
    text += '\n';
    begin = end + 1;
  }
  return text;
}

std::optional<std::string> print_bible() {
  if (::access(kBibleProgram, X_OK) != 0) return std::nullopt;
  FILE* pipe = ::popen("/usr/bin/bible -f Gen1:1-Rev22:21 2>/dev/null", "r");
  if (pipe == nullptr) return std::nullopt;
  std::string raw;
  std::array<char, 1 << 16> buffer;
  for (size_t n = 0; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) raw.append(buffer.data(), n);
  const bool ok = ::pclose(pipe) == 0 && raw.size() > 1'000'000;
  if (!ok) return std::nullopt;
  return without_verse_labels(raw);
}

// A cache that cannot be written is not an error: the next run gets the text from the program again.
void keep_in_cache(const fs::path& path, const std::string& text) {
  std::error_code ignored;
  fs::create_directories(path.parent_path(), ignored);
  const fs::path temporary = path.string() + "." + std::to_string(::getpid());
  std::ofstream out(temporary, std::ios::binary);
  out << text;
  out.close();
  if (out.good()) fs::rename(temporary, path, ignored);
  fs::remove(temporary, ignored);
}

}  // namespace

std::string user_cache_directory() {
  const char* xdg = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const auto given = [](const char* value) { return value != nullptr && *value != '\0'; };
  if (!given(xdg) && !given(home)) return "";  // where others may write is no place for what a run trains on
  const fs::path folder = (given(xdg) ? fs::path(xdg) : fs::path(home) / ".cache") / "ranklab";
  std::error_code ignored;
  fs::create_directories(folder, ignored);
  return folder.string();
}

void require_text(const std::string& path, const std::string& option) {
  const std::string prefix = megatron::prefix_of(path);
  // a text file whose name is also the prefix of two other files
  const bool is_a_text = path == prefix && is_there(path);
  const bool megatron = !is_a_text && is_there(prefix + ".idx") && is_there(prefix + ".bin");
  if (!megatron && !is_json_lines(path)) return;
  throw Error(
      ErrorKind::kInvalidArgument,
      {.where = option,
       .what = quote(path) + " is not text",
       .got = megatron ? "a dataset of Megatron-LM" : "lines of JSON, with the text under a key",
       .want = "a text file, or a folder of shards",
       .fix = "make shards of it: ranklab data prepare " + shell_path(megatron ? prefix : path) +
              (megatron ? " --from megatron" : " --append-eod") + " --out shards; then pass " + option + " shards"});
}

Corpus load_corpus(const std::string& path, const std::string& option) {
  if (!path.empty()) {
    require_text(path, option);
    return {read_file(path, option), path};
  }
  const std::string cache = user_cache_directory();
  const fs::path cached = fs::path(cache) / "corpus" / "bible-kjv.txt";
  std::error_code ignored;
  if (!cache.empty() && fs::file_size(cached, ignored) > 1'000'000 && !ignored)
    return {read_file(cached.string(), option), "bible-kjv (Debian)"};
  if (auto text = print_bible()) {
    if (!cache.empty()) keep_in_cache(cached, *text);
    return {std::move(*text), "bible-kjv (Debian)"};
  }
  return {generate_sentences(1, 1 << 20), "generated sentences (install bible-kjv or pass --data-path for real text)"};
}

int64_t measure_corpus(const std::string& path, const std::string& option) {
  require_text(path, option);
  const InputFile file(path, words_about(option));
  std::array<char, kBeginBytes> bytes{};
  const std::string_view begin(bytes.data(), file.read_at(0, bytes));
  const uint64_t mark = byte_order_mark(begin);
  // Empty ones and those that are too large are refused there; the kernel's own files do not say their size.
  if (file.size_bytes() <= mark || file.size_bytes() > kMostBytes)
    return static_cast<int64_t>(read_file(path, option).size());
  require_unpacked(path, begin, option);
  return static_cast<int64_t>(file.size_bytes() - mark);
}

std::string generate_sentences(uint64_t seed, size_t bytes) {
  static constexpr std::array<std::string_view, 12> kSubjects = {
      "the old king",  "a young shepherd",  "the quiet river", "my brother",   "the captain",   "every sparrow",
      "the long road", "a patient teacher", "the north wind",  "her daughter", "the fisherman", "that small lamp"};
  static constexpr std::array<std::string_view, 12> kVerbs = {"carries",  "remembers", "finds", "watches",
                                                              "follows",  "leaves",    "keeps", "crosses",
                                                              "sings of", "waits for", "gives", "loses"};
  static constexpr std::array<std::string_view, 12> kObjects = {
      "the golden field", "a broken boat",  "the first light", "an open door",   "the silver coin", "a letter",
      "the mountain",     "bread and salt", "the harvest",     "a distant city", "the morning",     "an honest word"};
  static constexpr std::array<std::string_view, 6> kEndings = {".",
                                                               " before the rain.",
                                                               " in the evening.",
                                                               ", and nobody speaks.",
                                                               " without a sound.",
                                                               " until the winter comes."};
  const RandomStream stream(seed, RandomPurpose::kData, "sentences");
  std::string text;
  text.reserve(bytes + 128);
  for (uint64_t i = 0; text.size() < bytes; ++i) {
    std::string sentence;
    sentence += kSubjects[stream.below(4 * i, kSubjects.size())];
    sentence += ' ';
    sentence += kVerbs[stream.below(4 * i + 1, kVerbs.size())];
    sentence += ' ';
    sentence += kObjects[stream.below(4 * i + 2, kObjects.size())];
    sentence += kEndings[stream.below(4 * i + 3, kEndings.size())];
    sentence[0] = static_cast<char>(sentence[0] - 'a' + 'A');
    text += sentence;
    text += i % 5 == 4 ? '\n' : ' ';
  }
  text.resize(bytes);
  return text;
}

}  // namespace ranklab
