#include "cli/common/library_file.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "core/base/files/input_file.h"
#include "core/base/files/path_type.h"
#include "core/base/shell_quote.h"
#include "core/base/system.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostHeaders = 1 << 10, kMostBytes = 1 << 26;  // a damaged header must not ask for all memory

// Part of a file, as far as it is there.
template <class T>
std::vector<T> read(const InputFile& file, uint64_t offset, size_t count) {
  std::vector<T> out(std::min(count, kMostBytes / sizeof(T)));
  out.resize(file.read_at(offset, {reinterpret_cast<char*>(out.data()), out.size() * sizeof(T)}) / sizeof(T));
  return out;
}

struct Library {
  uint64_t least_bytes = sizeof(Elf64_Ehdr);  // of a file that is whole
  std::vector<std::string> needed = {};
  std::string first_path = {}, last_path = {};  // DT_RPATH, searched before LD_LIBRARY_PATH; DT_RUNPATH, after it
};

// The text from there to the next NUL. LibTorch's tables of strings have megabytes.
std::string text_at(const InputFile& file, uint64_t offset) {
  constexpr size_t kPart = 256;
  std::string out;
  while (out.size() < kMostBytes) {
    const auto part = read<char>(file, offset + out.size(), kPart);
    const auto end = std::ranges::find(part, '\0');
    out.append(part.begin(), end);
    if (part.empty() || end != part.end()) break;
  }
  return out;
}

// The strings of the dynamic section, whose addresses are those in memory.
void read_dynamic(const InputFile& file, const std::vector<Elf64_Phdr>& headers, const Elf64_Phdr& dynamic,
                  Library& out) {
  const auto entries = read<Elf64_Dyn>(file, dynamic.p_offset, dynamic.p_filesz / sizeof(Elf64_Dyn));
  const auto value_of = [&](Elf64_Sxword tag) {
    const auto found = std::ranges::find(entries, tag, &Elf64_Dyn::d_tag);
    return found == entries.end() ? 0 : found->d_un.d_val;
  };
  const uint64_t address = value_of(DT_STRTAB), bytes = value_of(DT_STRSZ);
  const auto has_strings = [&](const Elf64_Phdr& part) {
    return part.p_type == PT_LOAD && address >= part.p_vaddr && address - part.p_vaddr < part.p_filesz;
  };
  const auto part = std::ranges::find_if(headers, has_strings);
  const auto text_of = [&](const Elf64_Dyn& entry) {
    if (part == headers.end() || entry.d_un.d_val >= bytes) return std::string();
    return text_at(file, part->p_offset + (address - part->p_vaddr) + entry.d_un.d_val);
  };
  for (const Elf64_Dyn& entry : entries) {
    if (entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_NEEDED) out.needed.push_back(text_of(entry));
    if (entry.d_tag == DT_RPATH) out.first_path = text_of(entry);
    if (entry.d_tag == DT_RUNPATH) out.last_path = text_of(entry);
  }
  if (!out.last_path.empty()) out.first_path.clear();
}

Library read_library(const InputFile& file) {
  Library out;
  const auto head = read<Elf64_Ehdr>(file, 0, 1);
  // What is no 64-bit library at all is left to the loader, which says so.
  if (head.empty() || std::memcmp(head[0].e_ident, ELFMAG, SELFMAG) != 0 || head[0].e_ident[EI_CLASS] != ELFCLASS64)
    return out;
  out.least_bytes = std::max(out.least_bytes, head[0].e_shoff + uint64_t{head[0].e_shnum} * head[0].e_shentsize);
  const auto headers = read<Elf64_Phdr>(file, head[0].e_phoff, std::min<size_t>(head[0].e_phnum, kMostHeaders));
  for (const Elf64_Phdr& part : headers)
    if (part.p_type == PT_LOAD) out.least_bytes = std::max(out.least_bytes, part.p_offset + part.p_filesz);
  for (const Elf64_Phdr& part : headers)
    if (part.p_type == PT_DYNAMIC) read_dynamic(file, headers, part, out);
  return out;
}

std::vector<fs::path> folders_in(const std::string& search_path, const fs::path& origin) {
  std::vector<fs::path> out;
  for (std::string& folder : split(search_path, ':')) {
    for (const std::string word : {"${ORIGIN}", "$ORIGIN"})
      if (const size_t at = folder.find(word); at != std::string::npos)
        folder.replace(at, word.size(), origin.string());
    if (!folder.empty()) out.emplace_back(std::move(folder));
  }
  return out;
}

// ./ranklab setup takes a folder with this mark for complete.
std::string how_to_renew(const fs::path& library) {
  const fs::path home = library.parent_path().parent_path();
  if (library.filename().string().starts_with("libranklab_")) return "./ranklab build";
  if (is_there((home / ".complete").string())) return "rm -r " + shell_path(home.string()) + " and run ./ranklab setup";
  return "install that library again";
}

class Walk {
 public:
  Walk(std::string where, LibraryFaults& faults) : where_(std::move(where)), faults_(faults) {}

  // RETURNS: false if the loader would go on looking elsewhere.
  bool visit(const fs::path& path) {
    if (!is_there(path.string())) return false;
    try {
      if (seen_.insert(path).second) look_into(path, InputFile(path.string(), {}));
      return true;
    } catch (const Error& unreadable) {
      note_hidden(path, unreadable.text().got);
      return false;
    }
  }

 private:
  void look_into(const fs::path& path, const InputFile& file) {
    const Library library = read_library(file);
    if (file.size_bytes() < library.least_bytes) note_cut(path, file.size_bytes(), library.least_bytes);
    const std::string usual = environment_variable("LD_LIBRARY_PATH");
    std::vector<fs::path> folders;
    for (const std::string* places : {&library.first_path, &usual, &library.last_path})
      std::ranges::copy(folders_in(*places, path.parent_path()), std::back_inserter(folders));
    for (const std::string& name : library.needed)
      for (const fs::path& folder : folders)
        if (visit(folder / name)) break;
  }
  void note_hidden(const fs::path& path, const std::string& reason) {
    faults_.hidden.try_emplace(path.filename().string(), ErrorKind::kEnvironment,
                               ErrorText{.where = where_,
                                         .what = "a library that this command needs cannot be read",
                                         .got = quote(path.string()) + ": " + reason,
                                         .want = "a file that you may read",
                                         .fix = "check its permissions and those of the folders above it"});
  }
  void note_cut(const fs::path& path, uint64_t bytes, uint64_t least_bytes) {
    if (faults_.cut) return;
    faults_.cut.emplace(ErrorKind::kEnvironment,
                        ErrorText{.where = where_,
                                  .what = "a library that this command needs is cut off",
                                  .got = quote(path.string()) + ": " + std::to_string(bytes) + " bytes",
                                  .want = std::to_string(least_bytes) + " bytes or more",
                                  .fix = how_to_renew(path)});
  }

  std::string where_;
  LibraryFaults& faults_;
  std::set<fs::path> seen_;
};

}  // namespace

LibraryFaults library_faults(const std::string& path, const std::string& where) {
  LibraryFaults faults;
  Walk(where, faults).visit(path);
  return faults;
}

}  // namespace ranklab
