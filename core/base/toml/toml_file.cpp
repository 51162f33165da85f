#include "core/base/toml/toml_file.h"

#include "core/base/error.h"

namespace ranklab {

toml::table parse_toml(const std::string& text, const std::string& name, const std::string& fix) {
  try {
    return toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    throw Error(ErrorKind::kBadFile, {.where = name + ":" + std::to_string(error.source().begin.line),
                                      .what = "not TOML",
                                      .got = std::string(error.description()),
                                      .fix = fix});
  }
}

}  // namespace ranklab
