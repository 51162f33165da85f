#include "core/config/settings/flags.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/config/settings/fields.h"

namespace ranklab {
namespace {

const ConfigField* with_flag(const std::string& flag) {
  const auto found = std::ranges::find_if(config_fields(), [&](const ConfigField& field) {
    return std::ranges::find(field.flags, flag) != field.flags.end();
  });
  return found == config_fields().end() ? nullptr : &*found;
}

}  // namespace

std::vector<ConfigSetting> flag_settings(const std::vector<std::string>& words, const std::string& option) {
  std::vector<ConfigSetting> settings;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& flag = words[i];
    const ConfigField* field = with_flag(flag);
    const bool off = field == nullptr && flag.starts_with("--no-");
    if (off) field = with_flag("--" + flag.substr(5));
    if (field != nullptr && field->kind == ConfigField::Kind::kFlag) {
      settings.push_back({field->key, off ? "false" : "true", "flag " + flag});
      continue;
    }
    RANKLAB_CHECK(i + 1 < words.size() && flag.starts_with("--"), ErrorKind::kInvalidArgument, .where = option,
                  .what = option + " takes flags with their values", .got = quote(join(words, " ")),
                  .want = option + " --tp 2 --zero-stage 1", .fix = "write each flag with a value");
    settings.push_back({field_named(flag).key, words[++i], "flag " + flag});
  }
  return settings;
}

}  // namespace ranklab
