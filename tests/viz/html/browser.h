// A page in headless Chromium (Debian's, without a display).
#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/cli/run_program.h"

namespace ranklab::viz {

inline bool has_browser() { return run_command("command -v chromium").exit_code == 0; }

// The document after the page's program and then `actions` have run, as Chromium writes it, without the page's own
// text: what a reader sees.
inline std::string document_of(std::string page, const std::string& actions, const std::string& place = "",
                               const std::string& flags = "") {
  const std::string script = "<script>" + actions + "</script>\n</body>";
  page.replace(page.rfind("</body>"), 7, script);
  const std::string folder = temporary_path("browser"), file = temporary_path("page") + ".html";
  std::ofstream(file) << page;
  const Outcome out = run_command("timeout 90 chromium --headless --no-sandbox --disable-gpu --user-data-dir='" +
                                  folder + "' --no-first-run --window-size=1300,900 --virtual-time-budget=4000 " +
                                  flags + " --dump-dom 'file://" + file + place + "' 2>/dev/null");
  EXPECT_EQ(out.exit_code, 0);
  std::filesystem::remove(file);
  const size_t body = out.output.find("<body");
  if (body == std::string::npos) return out.output;
  return out.output.substr(body, out.output.find("<script", body) - body);
}

}  // namespace ranklab::viz
