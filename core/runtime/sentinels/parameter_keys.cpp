#include "core/runtime/sentinels/parameter_keys.h"

#include <charconv>
#include <set>
#include <string_view>

#include "core/runtime/text/gather_texts.h"

namespace ranklab {

double whole_elements(const Parameter& parameter) {
  double elements = parameter.is_expert ? 0 : 1;
  for (const int64_t size : parameter.partition.global_shape) elements *= static_cast<double>(size);
  return elements;
}

int64_t layer_of_key(const std::string& key) {
  constexpr std::string_view kLayers = "layers.";
  if (!key.starts_with(kLayers)) return -1;
  int64_t layer = -1;
  std::from_chars(key.data() + kLayers.size(), key.data() + key.size(), layer);
  return layer;
}

std::vector<std::string> all_parameter_keys(const ParameterRegistry& registry, Communicator& world,
                                            c10::Device device) {
  std::set<std::string> mine;
  for (const Parameter* parameter : registry.parameters()) mine.insert(parameter_key(*parameter));
  std::string text;
  for (const std::string& key : mine) text += key + "\n";
  std::set<std::string> all;
  for (const std::string& keys : gather_texts(text, world, device)) {
    for (size_t begin = 0, end = 0; (end = keys.find('\n', begin)) != std::string::npos; begin = end + 1)
      all.insert(keys.substr(begin, end - begin));
  }
  return {all.begin(), all.end()};
}

}  // namespace ranklab
