#include "runtime/data/table_reader.hpp"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "runtime/data/examples.hpp"
#include "runtime/data/first_rows.hpp"
#include "runtime/data/key_names.hpp"
#include "runtime/data/row_encoder.hpp"

namespace cudp {
namespace {

/// Returns the index of the first column of the schema for which is(column) is true. Throws
/// InputError if there is none; the message says that `wanted` was expected. Is: type of the
/// function is(). file: name of the table, for the message. near: text at the end of the message.
template <class Is>
std::size_t find_column(const TableSchema& schema, const Is& is, const std::string& wanted,
                        const std::string& file, const std::string& near = "") {
  const auto found = std::find_if(schema.columns.begin(), schema.columns.end(), is);
  if (found == schema.columns.end()) bad_input(file, "", wanted, "none in its schema" + near);
  return static_cast<std::size_t>(found - schema.columns.begin());
}

void clear(TableBlock& block) {
  clear_examples(block.examples);
  block.ids.clear();
  block.groups.clear();
  block.rows.clear();
}

}  // namespace

/// Implementation of TableReader without a thread: reads the rows of the table, and converts them
/// to blocks of examples.
class TableReader::Source {
 public:
  Source(ByteReader& bytes, const TableSchema& schema, const TableOptions& options)
      : file_(bytes.name()),
        options_(options),
        encoder_(schema, options.coder, options.malformed, options.scoring),
        faults_(bytes.name()),
        rows_(bytes, schema, faults_, options.malformed,
              options.labels ? LabelColumn::required : LabelColumn::optional,
              options.units ? UnitColumn::required : UnitColumn::optional,
              options.scoring ? UnlistedColumns::any : UnlistedColumns::as_stated) {
    if (options.units && schema.unit) units_.emplace(schema, options.malformed);
    if (options.ids)
      id_ = find_column(
          schema, [](const Column& c) { return std::holds_alternative<Id>(c.kind); },
          "a column of kind id", file_);
    if (id_ && !rows_.has(*id_)) id_.reset();
    if (schema.unit && options.group_by == schema.unit->column)
      bad_input(file_, "",
                "another column to group by than " + shown(options.group_by) +
                    ", whose texts name the units of privacy",
                "that one");
    if (!options.group_by.empty())
      group_ = find_column(
          schema, [&](const Column& c) { return c.name == options.group_by; },
          "a column " + shown(options.group_by), file_,
          near_column(options.group_by, names_of(schema.columns)));
    if (group_ && !rows_.has(*group_))
      bad_input(file_, "", "a column " + shown(options.group_by),
                "none of that name in the header row");
    const Dataset set = encoder_.empty();
    const auto width = static_cast<std::size_t>(std::max(set.shape.size(), 1));
    max_rows_ = std::clamp<std::size_t>(kMaxBlockNumbers / width, 1,
                                        std::max<std::size_t>(options.max_rows, 1));
  }

  Dataset empty() const { return encoder_.empty(); }
  bool has_ids() const { return id_.has_value(); }
  const std::vector<std::string>& dropped() const { return rows_.dropped(); }

  bool next(TableBlock& block) {
    if (block.examples.classes == 0) block.examples = encoder_.empty();
    clear(block);
    block.first_row = row_;
    TableRow row;
    while (block.examples.labels.size() < max_rows_ && !faults_.full() && rows_.next(row)) {
      if (units_ && !units_->uses(row, faults_)) {
        look_for_faults(row);
        if (faults_.any()) skip_to_faults(row);
        continue;
      }
      encoder_.append(row, options_.labels, block.examples, faults_);
      if (units_) block.examples.first_rows.push_back(units_->first());
      if (id_) block.ids.push_back(row.cells[*id_]);
      if (group_) block.groups.push_back(row.cells[*group_]);
      if (options_.row_texts) block.rows.push_back(row.text);
      if (faults_.any()) skip_to_faults(row);
    }
    if (faults_.any()) faults_.raise();
    row_ += block.examples.labels.size();
    return !block.examples.labels.empty();
  }

 private:
  /// Checks a row that is not used because its unit has max_rows rows already. Such a row must be
  /// valid, too, because it is used if another row of its unit is removed from the table.
  void look_for_faults(const TableRow& row) {
    if (!unused_) unused_ = encoder_.empty();
    clear_examples(*unused_);
    encoder_.append(row, options_.labels, *unused_, faults_);
  }

  /// Searches the remaining rows for further faults, and then throws all of them.
  void skip_to_faults(TableRow& row) {
    while (!faults_.full() && rows_.next(row)) {
      if (units_) units_->uses(row, faults_);
      look_for_faults(row);
    }
    faults_.raise();
  }

  std::string file_;
  TableOptions options_;
  RowEncoder encoder_;
  TableFaults faults_;
  TableRows rows_;
  std::optional<FirstRows> units_;
  std::optional<Dataset> unused_;
  std::optional<std::size_t> id_;     // index among the schema's columns
  std::optional<std::size_t> group_;  // index among the schema's columns
  std::size_t max_rows_ = 1;
  std::uint64_t row_ = 0;
};

/// Reads blocks of rows in advance: while the caller uses the current block, a thread reads the
/// next one.
class TableReader::Ahead {
 public:
  explicit Ahead(Source& source) : source_(source), thread_([this] { read(); }) {}
  ~Ahead() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Ahead(const Ahead&) = delete;
  Ahead& operator=(const Ahead&) = delete;
  Ahead(Ahead&&) = delete;
  Ahead& operator=(Ahead&&) = delete;

  bool next(TableBlock& block) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return full_ || ended_; });
    if (!full_) {
      if (error_) std::rethrow_exception(error_);
      return false;
    }
    std::swap(block, waiting_);
    full_ = false;
    changed_.notify_all();
    return true;
  }

 private:
  void read() {
    TableBlock block;
    for (;;) {
      bool more = false;
      std::exception_ptr error;
      try {
        more = source_.next(block);
      } catch (...) {
        error = std::current_exception();
      }
      std::unique_lock lock(mutex_);
      if (more) {
        changed_.wait(lock, [this] { return !full_ || stop_; });
        if (!stop_) {
          std::swap(block, waiting_);
          full_ = true;
        }
      } else {
        ended_ = true;
        error_ = error;
      }
      const bool end = ended_ || stop_;
      changed_.notify_all();
      if (end) return;
    }
  }

  Source& source_;
  std::mutex mutex_;
  std::condition_variable changed_;
  TableBlock waiting_;
  bool full_ = false;   // waiting_ holds a block
  bool ended_ = false;  // no block follows, but error_ may be set
  bool stop_ = false;
  std::exception_ptr error_;
  std::thread thread_;  // last member, because the thread uses all the others
};

TableReader::TableReader(ByteReader& bytes, const TableSchema& schema, const TableOptions& options)
    : source_(std::make_unique<Source>(bytes, schema, options)) {
  if (options.ahead) ahead_ = std::make_unique<Ahead>(*source_);
}

TableReader::~TableReader() = default;

Dataset TableReader::empty() const { return source_->empty(); }
bool TableReader::has_ids() const { return source_->has_ids(); }
const std::vector<std::string>& TableReader::dropped() const { return source_->dropped(); }

bool TableReader::next(TableBlock& block) {
  return ahead_ != nullptr ? ahead_->next(block) : source_->next(block);
}

KeptRange kept_rows(Dataset empty, const TableSchema& schema, const TableOptions& options,
                    Share share, std::uint64_t rows, const std::string& file) {
  if (const std::size_t row_bytes = feature_bytes(empty);
      options.storage.in_file(share.of(rows).size() * row_bytes))
    return {std::move(empty), share, rows, RowFileWriter(options.storage.folder, file, row_bytes)};
  RowEncoder(schema, options.coder).reserve(empty, share.of(rows).size());
  return {std::move(empty), share, rows};
}

Dataset read_table(ByteReader& bytes, const TableSchema& schema, const TableOptions& options,
                   std::uint64_t rows, Share share) {
  TableReader reader(bytes, schema, options);
  KeptRange kept = kept_rows(reader.empty(), schema, options, share, rows, bytes.name());
  TableBlock block;
  while (reader.next(block)) kept.take(block.examples);
  return kept.finish(bytes.name());
}

}  // namespace cudp
