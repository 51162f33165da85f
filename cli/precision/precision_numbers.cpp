#include "cli/precision/precision_numbers.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/base/error.h"
#include "core/base/files/input_file.h"
#include "core/base/named_rows.h"
#include "core/base/numbers/philox.h"
#include "core/base/shell_quote.h"
#include "core/base/text.h"
#include "core/checkpoint/safetensors.h"

namespace ranklab {
namespace {

constexpr const char* kNumbersWhere = "precision quantize";
constexpr size_t kMostBytes = size_t{1} << 30;

NumberMatrix as_rows(std::string name, std::vector<float> numbers, int64_t cols) {
  NumberMatrix m{.name = std::move(name), .count = static_cast<int64_t>(numbers.size())};
  m.cols = std::max<int64_t>(std::min(cols, m.count), 1);
  m.rows = (m.count + m.cols - 1) / m.cols;
  m.data = std::move(numbers);
  m.data.resize(static_cast<size_t>(m.rows * m.cols));
  return m;
}

NumberMatrix draw(const NumberSource& source) {
  double mean = 0, deviation = 0;
  int end = 0;
  const std::string& text = source.text;
  const bool parsed = std::sscanf(text.c_str(), "normal(%lf,%lf)%n", &mean, &deviation, &end) == 2 &&
                      static_cast<size_t>(end) == text.size();
  RANKLAB_CHECK(parsed && std::isfinite(mean) && std::isfinite(deviation) && deviation >= 0,
                ErrorKind::kInvalidArgument, .where = kNumbersWhere, .what = "not a distribution", .got = quote(text),
                .want = "normal(MEAN,DEVIATION), or a file", .fix = "for example 'normal(0,1e-3)'");
  std::vector<float> values(static_cast<size_t>(source.samples));
  RandomStream(source.seed, RandomPurpose::kSample, kNumbersWhere).fill_normal(0, values);
  for (float& value : values) value = static_cast<float>(mean + deviation * value);
  return as_rows(text, std::move(values), source.cols);
}

std::vector<float> parse_text(const std::string& text, const std::string& path) {
  std::vector<float> numbers;
  constexpr const char* kSpaces = " \t\r\n,";
  for (size_t at = text.find_first_not_of(kSpaces); at != std::string::npos; at = text.find_first_not_of(kSpaces, at)) {
    const size_t end = std::min(text.find_first_of(kSpaces, at), text.size());
    const std::string word = text.substr(at, end - at);
    char* rest = nullptr;
    numbers.push_back(std::strtof(word.c_str(), &rest));
    // Not compared with '\0', because a file may contain zero bytes.
    RANKLAB_CHECK(rest == word.c_str() + word.size(), ErrorKind::kBadFile, .where = kNumbersWhere,
                  .what = path + " holds a value that is not a number", .got = quote(printable(word, 40)),
                  .want = "numbers between spaces, lines or commas", .fix = "remove it, or pass a file of numbers");
    at = end;
  }
  return numbers;
}

std::vector<float> parse_raw(const std::string& bytes, const std::string& path) {
  RANKLAB_CHECK(bytes.size() % sizeof(float) == 0, ErrorKind::kBadFile, .where = kNumbersWhere,
                .what = path + " is not a file of fp32 numbers", .got = std::to_string(bytes.size()) + " bytes",
                .want = "a multiple of 4, or a .safetensors or .txt file",
                .fix = "name text .txt, and a safetensors file .safetensors");
  std::vector<float> numbers(bytes.size() / sizeof(float));
  if (!bytes.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

NumberMatrix of_tensor(const SafetensorsFile& file, const TensorEntry& entry) {
  const std::vector<std::byte> bytes = file.read(entry);
  const uint64_t step = size_bytes(entry.type);
  std::vector<float> numbers(entry.elements());
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<float>(element_value(entry.type, bytes.data() + i * step));
  const auto count = static_cast<int64_t>(numbers.size());
  return as_rows(entry.name, std::move(numbers), entry.shape.empty() ? count : entry.shape.back());
}

std::vector<NumberMatrix> read_tensors(const NumberSource& source) {
  const SafetensorsFile file(source.text);
  std::vector<std::string> names;
  std::vector<NumberMatrix> matrices;
  for (const TensorEntry& entry : file.tensors()) {
    if (!is_float(entry.type) || entry.elements() == 0) continue;
    names.push_back(entry.name);
    if (source.tensor.empty() || source.tensor == entry.name) matrices.push_back(of_tensor(file, entry));
  }
  RANKLAB_CHECK(!matrices.empty(), ErrorKind::kInvalidArgument, .where = kNumbersWhere,
                .what = "no such tensor of floating-point numbers in " + source.text,
                .got = source.tensor.empty() ? "none" : quote(source.tensor),
                .want = std::to_string(names.size()) + " tensors have them",
                .fix = did_you_mean(source.tensor, names, "see: ranklab ckpt inspect " + shell_word(source.text)));
  return matrices;
}

}  // namespace

std::vector<NumberMatrix> read_numbers(const NumberSource& source) {
  const std::string& path = source.text;
  // A file name may look like this, too: "weights (1).txt".
  if (std::error_code none; path.find('(') != std::string::npos && !std::filesystem::exists(path, none))
    return {draw(source)};
  if (path.ends_with(".safetensors")) return read_tensors(source);
  const std::string bytes = read_whole_file(
      path, kMostBytes, {.where = kNumbersWhere, .fix = "give a file, or a distribution as 'normal(0,1)'"});
  std::vector<float> numbers = path.ends_with(".txt") ? parse_text(bytes, path) : parse_raw(bytes, path);
  RANKLAB_CHECK(!numbers.empty(), ErrorKind::kBadFile, .where = kNumbersWhere, .what = path + " holds no numbers",
                .got = std::to_string(bytes.size()) + " bytes", .want = "at least one number",
                .fix = "pass a file that has some");
  return {as_rows(path, std::move(numbers), source.cols)};
}

}  // namespace ranklab
