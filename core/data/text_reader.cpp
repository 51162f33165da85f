#include "core/data/text_reader.h"

#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/data/inputs/documents.h"
#include "core/data/inputs/inputs.h"
#include "core/data/inputs/lines.h"
#include "core/data/packed_format.h"

namespace ranklab {
namespace {

using TakeText = std::function<void(const std::string&)>;

void take_from(const std::string& path, const std::string& place, const std::string& text, const TakeText& take) {
  try {
    take(text);
  } catch (const Error& error) {
    const ErrorText& why = error.text();
    inputs::refuse_input(path, place, why.what, why.got, why.want, why.fix);
  }
}

}  // namespace

uint64_t each_training_text(const std::string& path, const std::string& json_key, const TakeText& take) {
  require_unpacked(path, "data tokenizer train");
  uint64_t bytes = 0;
  std::string text;
  if (is_json_lines(path)) {
    const auto documents = inputs::open_json_documents(path, json_key);
    for (; documents->next(text); bytes += text.size()) take_from(path, documents->place(), text, take);
    return bytes;
  }
  for (inputs::Lines lines(path); lines.next(text); bytes += text.size()) {
    if (bytes == 0) text.erase(0, byte_order_mark(text));
    if (lines.had_end()) text += '\n';
    take_from(path, lines.place(), text, take);
  }
  return bytes;
}

}  // namespace ranklab
