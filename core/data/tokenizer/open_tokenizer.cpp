#include <filesystem>

#include "core/base/files/input_file.h"
#include "core/base/files/path_type.h"
#include "core/data/tokenizer/json_reader.h"
#include "core/data/tokenizer/tokenizer.h"
#include "core/data/tokenizer/tokenizer_file.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostBytes = 64 << 20;  // the largest known ones have 33 MB

std::string read(const std::string& path) {
  return read_whole_file(path, kMostBytes,
                         {.where = "tokenizer",
                          .fix = "pass a tokenizer.json, or a folder with it or with vocab.json "
                                 "and merges.txt, as transformers' save_pretrained() writes"});
}

// "eos_token" is a text, or an object with one.
std::string end_token_of(const std::string& config, const std::string& path) {
  const tokenizers::JsonReader in(path);
  const tokenizers::Json file = in.parse(config);
  const tokenizers::Json& token = in.member(file, "eos_token");
  if (token.is_object()) return in.text(token, "content");
  return token.is_null() ? "" : in.text(file, "eos_token");
}

Tokenizer open_file(const std::string& path) { return {read(path), path}; }

}  // namespace

Tokenizer open_tokenizer(const std::string& path) {
  if (!is_folder(path)) return open_file(path);
  const auto in_folder = [&](const char* name) { return (fs::path(path) / name).string(); };
  const std::string config_path = in_folder("tokenizer_config.json");
  const std::string config = is_there(config_path) ? read(config_path) : "";
  const bool is_pair = !is_there(in_folder(kTokenizerFile)) && is_there(in_folder("vocab.json"));
  Tokenizer tokenizer =
      is_pair ? Tokenizer(tokenizer_json(read_vocab_and_merges(read(in_folder("vocab.json")),
                                                               read(in_folder("merges.txt")), config, path)),
                          path)
              : open_file(in_folder(kTokenizerFile));
  if (!config.empty()) tokenizer.set_end_token(end_token_of(config, config_path));
  return tokenizer;
}

std::optional<Tokenizer> find_tokenizer(const std::string& folder) {
  const std::string path = (fs::path(folder) / kTokenizerFile).string();
  if (!is_there(path)) return {};
  return open_file(path);
}

}  // namespace ranklab
