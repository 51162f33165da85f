// The tensors of a Hugging Face folder: model.safetensors, or the files that model.safetensors.index.json names. The
// folder is not trusted: sizes are bounded, file names must be plain and no links (so nothing outside is read), and the
// index and the files must name the same tensors. Thread rule: one thread.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/checkpoint/safetensors.h"
#include "core/checkpoint/tensor_source.h"

namespace ranklab {

// Whether a folder is meant as one of Hugging Face's: it contains a config.json, even if that cannot be accessed.
// Throws kIo if there is something at the path that is not a folder, or one that may not be entered.
bool is_hf_folder(const std::string& folder);

class HfFolder : public TensorSource {
 public:
  explicit HfFolder(const std::string& folder);  // throws kIo, kBadFile
  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  std::vector<std::byte> read(const std::string& name) const override;
  std::vector<std::byte> read_slice(const std::string& name, int64_t index) const override;
  std::string where() const override { return folder_; }

  const std::vector<std::unique_ptr<SafetensorsFile>>& files() const { return files_; }
  // For what only looks into the files: this has no tensors any more.
  std::vector<std::unique_ptr<SafetensorsFile>> take_files() &&;
  const SafetensorsFile& file_of(const std::string& tensor) const { return *places_.at(tensor); }

  std::string config_path() const { return folder_ + "/config.json"; }
  std::string config_text() const;
  std::string text_of(const char* name) const;  // text of a file next to the tensors; "": the folder does not have it

 private:
  void add_file(const std::string& file);
  void read_index(const std::string& path);

  std::string folder_;
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, const SafetensorsFile*> places_;
  std::vector<TensorInfo> tensors_;
};

}  // namespace ranklab
