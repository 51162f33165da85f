#include "core/checkpoint/checkpoint_diff.h"

#include <set>

#include "core/base/text.h"

namespace ranklab {
namespace {

using Kind = TensorDifference::Kind;

const StoredTensor* find(const Checkpoint& checkpoint, const std::string& name) {
  const auto found = checkpoint.manifest().tensors.find(name);
  return found == checkpoint.manifest().tensors.end() ? nullptr : &found->second;
}

TensorDifference compare(const Checkpoint& a, const Checkpoint& b, const std::string& name) {
  const StoredTensor *in_a = find(a, name), *in_b = find(b, name);
  TensorDifference difference = difference_of_form(name, in_a, in_b);
  if (difference.kind == TensorDifference::Kind::kValues)
    compare_elements(in_a->type, in_a->shape, 0, a.read(name), b.read(name), difference);
  return difference;
}

// "clean_steps 3, scale 1024, skipped_steps 0"
std::string text_of(const std::map<std::string, double>& numbers) {
  std::string text;
  for (const auto& [key, value] : numbers)
    text += (text.empty() ? "" : ", ") + printable(key) + strprintf(" %.10g", value);
  return text.empty() ? "none" : text;
}

}  // namespace

CheckpointDifference diff_checkpoints(const Checkpoint& a, const Checkpoint& b) {
  const CheckpointManifest &left = a.manifest(), &right = b.manifest();
  CheckpointDifference result;
  const auto progress = [&](const char* what, int64_t in_a, int64_t in_b) {
    if (in_a == in_b) return;
    result.progress.push_back(std::string(what) + ": " + std::to_string(in_a) + " in a, " + std::to_string(in_b) +
                              " in b");
  };
  progress("step", left.step, right.step);
  progress("updates", left.updates, right.updates);
  progress("consumed samples", left.consumed_samples, right.consumed_samples);
  if (left.loss_scale != right.loss_scale)
    result.progress.push_back("loss scale: " + text_of(left.loss_scale) + " in a, " + text_of(right.loss_scale) +
                              " in b");
  std::set<std::string> keys, names;
  keys.merge(keys_that_differ(left.config, right.config));
  keys.merge(keys_that_differ(left.data, right.data));
  if (left.layout != right.layout) keys.insert("layout");
  result.settings.assign(keys.begin(), keys.end());
  for (const CheckpointManifest* manifest : {&left, &right}) {
    for (const auto& [name, tensor] : manifest->tensors) names.insert(name);
  }
  for (const std::string& name : names) {
    TensorDifference difference = compare(a, b, name);
    if (difference.kind == Kind::kValues && difference.differing == 0) {
      ++result.same_tensors;
    } else {
      result.tensors.push_back(std::move(difference));
    }
  }
  return result;
}

}  // namespace ranklab
