#include "core/parity/dump_metadata.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "core/base/error.h"
#include "core/base/json_integer.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMostElements = int64_t{1} << 33;  // limit for a global tensor
constexpr const char* kSliceExample = "{\"global_shape\": [8, 32], \"dims\": {\"0\": [[4, 8]]}}";
constexpr const char* kReadDocs = "see docs/parity.md, Files of other programs";

int64_t integer(const Json& json) { return json_integer<int64_t>(json, "a position"); }

size_t dim_of(const std::string& text) {
  size_t dim = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), dim);
  if (error != std::errc() || end != text.data() + text.size()) throw std::out_of_range("not the number of a dim");
  return dim;
}

// Reads the positions that the entries of a slice name; at most as many per dim as the local tensor has elements.
class SliceReader {
 public:
  SliceReader(const Json& json, int64_t most) : json_(json), most_(most) {}

  DumpSlice read() {
    for (const Json& size : json_.at("global_shape")) slice_.shape.push_back(integer(size));
    int64_t elements = 1;
    for (const int64_t size : slice_.shape) {
      if (size < 0 || (size > 0 && elements > kMostElements / size)) throw std::out_of_range("global_shape");
      elements *= size;
    }
    slice_.positions.resize(slice_.shape.size());
    if (json_.contains("dim"))
      for (const Json& range : json_.at("ranges")) add_range(static_cast<size_t>(integer(json_.at("dim"))), range);
    if (json_.contains("positions"))
      for (const Json& run : json_.at("positions")) add(0, integer(run.at(0)), integer(run.at(1)), integer(run.at(2)));
    if (json_.contains("sequences")) add_range(1, json_.at("sequences"));
    if (json_.contains("dims"))
      for (const auto& [dim, ranges] : json_.at("dims").items())
        for (const Json& range : ranges) add_range(dim_of(dim), range);
    if (json_.contains("elements")) cut(integer(json_.at("elements").at(0)), integer(json_.at("elements").at(1)));
    return std::move(slice_);
  }

 private:
  void add_range(size_t dim, const Json& range) {
    const int64_t first = integer(range.at(0)), end = integer(range.at(1));
    if (first < 0 || end < first) throw std::out_of_range("not a range of positions");
    add(dim, first, end - first, 1);
  }
  void add(size_t dim, int64_t first, int64_t count, int64_t stride) {
    std::vector<int64_t>& there = slice_.positions.at(dim);
    if (count < 0 || count > most_ - static_cast<int64_t>(there.size()) || first < 0 || first >= kMostElements ||
        stride < 1 || stride > most_)
      throw std::out_of_range("not a range of positions");
    for (int64_t i = 0; i < count; ++i) there.push_back(first + i * stride);
  }
  void cut(int64_t begin, int64_t end) {
    if (begin < 0 || end < begin || end > slice_.cut_elements()) throw std::out_of_range("elements");
    slice_.begin = begin;
    slice_.end = end;
  }

  const Json& json_;
  int64_t most_;
  DumpSlice slice_ = {};
};

}  // namespace

int64_t DumpSlice::cut_elements() const {
  int64_t count = 1;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    const int64_t size = positions[dim].empty() ? shape[dim] : static_cast<int64_t>(positions[dim].size());
    if (size > 0 && count > kMostElements / size) throw std::out_of_range("more positions than a tensor has elements");
    count *= size;
  }
  return count;
}

DumpSlice parse_dump_slice(const std::string& text, const std::vector<int64_t>& local, const std::string& where,
                           const std::string& name) {
  const Json json = Json::parse(text, nullptr, false);
  RANKLAB_CHECK(!json.is_discarded(), ErrorKind::kBadFile, .where = where,
                .what = "metadata " + quote("slice/" + name) + " is not JSON", .got = quote(text.substr(0, 60)),
                .want = kSliceExample, .fix = kReadDocs);
  int64_t most = 1;
  for (const int64_t size : local) most *= size;
  std::string reason;
  try {
    DumpSlice slice = SliceReader(json, most).read();
    slice.cut_elements();
    return slice;
  } catch (const Error& error) {
    reason = error.text().what;
  } catch (const std::exception& error) {
    reason = error.what();
  }
  throw Error(ErrorKind::kBadFile, {.where = where,
                                    .what = "the slice of " + quote(name) + " cannot be read: " + reason,
                                    .got = quote(text.substr(0, 120)),
                                    .want = kSliceExample,
                                    .fix = kReadDocs});
}

std::vector<AxisPlace> parse_coordinates(const std::string& text) {
  std::vector<AxisPlace> places;
  if (text.empty() || text == "one rank") return places;
  for (const std::string& part : split(text, ',')) {
    std::array<char, 16> axis_name{};
    AxisPlace one;
    int used = 0;
    const bool reads =
        std::sscanf(part.c_str(), " %15s %9d of %9d %n", axis_name.data(), &one.place, &one.size, &used) == 3 &&
        used == static_cast<int>(part.size());
    size_t axis = 0;
    constexpr auto kAxes = static_cast<size_t>(Axis::kCount);
    while (axis < kAxes && axis_name.data() != name(static_cast<Axis>(axis))) ++axis;
    RANKLAB_CHECK(reads && axis < kAxes && one.place >= 0 && one.place < one.size, ErrorKind::kBadFile,
                  .where = "coordinates", .what = "not the coordinates of a rank", .got = quote(text),
                  .want = "\"dp 0 of 2, tp 1 of 4\"", .fix = "write the axes as ranklab names them");
    one.axis = static_cast<Axis>(axis);
    places.push_back(one);
  }
  return places;
}

}  // namespace ranklab
