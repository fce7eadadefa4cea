#pragma once
// Datasets: samples from JSONL, a JSON array or CSV, with errors that name file, line and column.

#include "runtime/core/error.hpp"
#include "runtime/core/json.hpp"
#include "runtime/model/transcript.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// A file that the sandbox gets before the first snippet. Samples that name the same source file
/// share its bytes.
struct sample_file {
  std::string path;  ///< relative, '/'-separated, no ".."
  std::shared_ptr<const std::string> bytes;
};

/// One task of a dataset.
struct sample {
  std::string id;                     ///< unique in the dataset
  std::string input;                  ///< the task: the text, or a chat's last user message
  std::vector<chat_message> history;  ///< a chat's earlier messages
  std::vector<std::string> targets;   ///< any of them is right; empty: not to be scored
  json metadata = json::object();     ///< "choices", when given, is kept in here
  std::vector<sample_file> files;
  std::vector<std::string> images;  ///< with the task: https: or data: URLs
  std::size_t line = 0;             ///< where it begins, from 1
};

struct dataset_options {
  /// Our field name (input, target, id, metadata, files, images, choices) -> the dataset's.
  std::map<std::string, std::string> fields;
  bool skip_bad_lines = false;
  std::uint64_t limit = 0;  ///< stop after so many samples, unread lines are not checked; 0: all
  std::size_t shown_bad_lines = 20;
};

struct dataset {
  std::string path;
  std::string sha256;  ///< of the file's bytes, lower-case hex
  std::vector<sample> samples;
  std::uint64_t bad_lines = 0;            ///< left out; only with skip_bad_lines
  std::vector<std::string> bad_messages;  ///< of the first of them
};

/// Reads a whole dataset. The name decides the format: ".json" one array of objects, ".csv" RFC
/// 4180 with a header row, all else one JSON object per line. A byte order mark, CRLF and blank
/// lines are tolerated.
/// Fields  input: text, or messages {role: system|user|assistant, content} that end with user's;
///         target: text, number, boolean (as Python prints it) or a list of these; absent: none;
///         id: text or whole number; absent: the line's number (for arrays and CSV the record's);
///         metadata: object; choices: list, kept in metadata;
///         files: object of path -> text | "data:...;base64,..." | {"file": name beside the
///         dataset}; images: a text or a list of them: a file beside the dataset, a data: or an
///         https: URL. Other fields are ignored. In CSV the cells of metadata, files, images and
///         choices are JSON.
/// Errors  not_found, denied (unreadable), invalid_argument (a folder, too large, nothing in it),
///         corrupt: "file, line 3, column 14: what was expected"; equal ids name both lines. With
///         skip_bad_lines such lines are counted and left out, and only an unreadable or an empty
///         rest is an error.
[[nodiscard]] result<dataset> read_dataset(const std::string& path,
                                           const dataset_options& options = {});

/// The same from text; `name` is for messages and the format, `folder` for {"file": ...}.
[[nodiscard]] result<dataset> parse_dataset(std::string_view text, const std::string& name,
                                            const std::string& folder,
                                            const dataset_options& options = {});

}  // namespace troupe
