#include "cli/common/command_module.h"

#include <dlfcn.h>
#include <spawn.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>

#include "cli/common/library_file.h"
#include "core/base/error.h"
#include "core/base/system.h"
#include "core/base/text.h"

extern char** environ;

namespace ranklab {
namespace {

namespace fs = std::filesystem;

Error no_module(const std::string& module, const std::string& got) {
  return {ErrorKind::kEnvironment,
          {.where = "module " + module,
           .what = "this command's module cannot be opened",
           .got = got,
           .want = "libranklab_" + module + ".so, of the same build, beside the program or in ../lib",
           .fix = "./ranklab build"}};
}

// It is there, but the loader refuses it: it, or a library that it needs, is damaged, missing or of another version.
Error refused_module(const std::string& module, const std::string& why, const LibraryFaults& faults) {
  // The loader begins with the library that it does not find.
  const fs::path missing = why.substr(0, why.find(':'));
  const auto hidden = faults.hidden.find(missing.filename().string());
  if (hidden != faults.hidden.end() && why.find("cannot open") != std::string::npos) return hidden->second;
  const bool redirected = !environment_variable("LD_LIBRARY_PATH").empty();
  return {ErrorKind::kEnvironment,
          {.where = "module " + module,
           .what = "this command's module is there, but cannot be loaded",
           .got = why,
           .want = "it and the libraries that it needs, as they were when it was built",
           .fix = std::string("./ranklab build") +
                  (redirected ? ", or unset LD_LIBRARY_PATH, whose libraries are taken first" : "")}};
}

std::array<fs::path, 2> module_places(const std::string& module) {
  const fs::path folder = program_path().parent_path(), file = "libranklab_" + module + ".so";
  return {folder / file, folder.parent_path() / "lib" / file};
}

// A module is opened once and kept. RTLD_GLOBAL, because code compiled by lessons uses the module's symbols. RTLD_LAZY,
// because most commands call few of LibTorch's 31,000 imported functions, and looking all of them up takes a seventh of
// the loading time; our own modules are linked so that theirs are looked up at once (cli/CMakeLists.txt).
void* open_module(const std::string& module) {
  static std::map<std::string, void*> opened;
  if (const auto found = opened.find(module); found != opened.end()) return found->second;
  std::string looked;
  for (const fs::path& path : module_places(module)) {
    std::error_code unreadable;
    looked += (looked.empty() ? "nothing at " : ", ") + path.lexically_normal().string();
    if (!fs::exists(path, unreadable)) continue;
    const LibraryFaults faults = library_faults(path, "module " + module);
    if (faults.cut) throw *faults.cut;
    void* handle = ::dlopen(path.c_str(), RTLD_LAZY | RTLD_GLOBAL);
    if (handle == nullptr) throw refused_module(module, ::dlerror(), faults);
    return opened[module] = handle;
  }
  throw no_module(module, looked);
}

}  // namespace

void prepare_module(const std::string& module) {
  if (module == kTrainingModule) return;  // built along with the program
  const std::string driver = environment_variable("RANKLAB_DRIVER");
  if (driver.empty()) return;
  std::string verb = "module", name = module;
  std::array<char*, 4> arguments = {const_cast<char*>(driver.c_str()), verb.data(), name.data(), nullptr};
  pid_t child = 0;
  const int error = ::posix_spawn(&child, driver.c_str(), nullptr, nullptr, arguments.data(), environ);
  if (error != 0) throw no_module(module, driver + " cannot be started: " + std::string(::strerror(error)));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) throw no_module(module, "building it failed");
}

void* module_function(const std::string& module, const std::string& function) {
  void* symbol = ::dlsym(open_module(module), function.c_str());
  if (symbol == nullptr) throw no_module(module, "no function " + function);
  return symbol;
}

bool has_module(const std::string& module) {
  try {
    open_module(module);
    return true;
  } catch (const Error&) {
    return false;
  }
}

CommandAction setup_from_module(const std::string& module, const std::string& command, CommandLine& app) {
  CommandAction action;
  reinterpret_cast<ModuleSetup*>(module_function(module, "ranklab_command_" + command))(app, action);
  return action;
}

}  // namespace ranklab
