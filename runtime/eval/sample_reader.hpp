#pragma once
// From one record's JSON to a checked sample.

#include "runtime/eval/dataset.hpp"
#include "runtime/eval/records.hpp"

namespace troupe {

/// Reads samples by one set of field names. Keeps the bytes of files that samples name.
class sample_reader {
public:
  /// `fields` as in dataset_options; `folder` holds the files that samples name.
  sample_reader(std::map<std::string, std::string> fields, std::string folder);

  /// Errors  corrupt: "line 3, column 14: 'question': expected ..., got ...". The id is empty when
  ///         the record has none.
  [[nodiscard]] result<sample> read(const record& from);

  /// The dataset's name of our field.
  [[nodiscard]] const std::string& name_of(const std::string& field) const;

private:
  struct misfit {
    std::string field;  ///< ours; empty: the whole record
    std::string what;
  };
  template <class T>
  using checked = tl::expected<T, misfit>;

  [[nodiscard]] checked<sample> from_json(const json& row);
  [[nodiscard]] checked<void> take_input(const json& row, sample& into) const;
  [[nodiscard]] checked<void> take_chat(const json& messages, sample& into) const;
  [[nodiscard]] checked<void> take_targets(const json& row, sample& into) const;
  [[nodiscard]] checked<void> take_id(const json& row, sample& into) const;
  [[nodiscard]] checked<void> take_metadata(const json& row, sample& into) const;
  [[nodiscard]] checked<void> take_files(const json& row, sample& into);
  [[nodiscard]] checked<std::shared_ptr<const std::string>> bytes_of(const std::string& path,
                                                                     const json& value);
  [[nodiscard]] checked<void> take_images(const json& row, sample& into);
  [[nodiscard]] checked<std::string> image_of(const json& value);
  /// `field` is the one that names the file.
  [[nodiscard]] checked<std::shared_ptr<const std::string>> load(const std::string& name,
                                                                 const std::string& field);
  [[nodiscard]] const json* find(const json& row, const std::string& field) const;

  std::map<std::string, std::string> fields_;
  std::string folder_;
  std::map<std::string, std::shared_ptr<const std::string>> loaded_;
};

}  // namespace troupe
