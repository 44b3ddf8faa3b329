#include "runtime/results/scorer.hpp"

#include <algorithm>
#include <utility>

#include <spdlog/fmt/fmt.h>

#include "runtime/base/error.hpp"
#include "runtime/data/find_schema.hpp"
#include "runtime/data/folders.hpp"
#include "runtime/data/match_schema.hpp"
#include "runtime/data/matrix_reader.hpp"
#include "runtime/data/sources.hpp"
#include "runtime/data/standard_input.hpp"

namespace cudp {
namespace {

EngineSettings settings_for(const ScoringRequest& request) {
  EngineSettings settings;
  settings.threads = request.threads;
  return settings;
}

/// Returns the schema with which a table of rows to score is read: the schema that the user named
/// for this table, otherwise the model's. A schema file that is merely next to the table is used
/// only if it matches the model's, because it may belong to another model.
TableSchema schema_for(const ReleasedModel& model, const std::string& model_name,
                       const DataRequest& data, Reporter& reporter) {
  try {
    const std::optional<FoundSchema> given = find_schema(data);
    if (!given) return *model.inputs.schema;
    return matched_schema(*model.inputs.schema, given->schema, given->source, model_name);
  } catch (const InputError& e) {
    if (!data.schema.empty()) throw;
    reporter.warn(std::string("the schema next to the table is not used: ") + e.what());
    return *model.inputs.schema;
  }
}

/// Warns the user that a table has columns which the model does not use. names: names of these
/// columns.
void warn_of_dropped(const std::string& table, const std::vector<std::string>& names,
                     Reporter& reporter) {
  if (names.empty()) return;
  reporter.warn(
      fmt::format("{}: {} that the model was not trained with {} not used: {}", table,
                  names.size() == 1 ? "1 column" : fmt::format("{} columns", names.size()),
                  names.size() == 1 ? "is" : "are", column_list(names)));
}

}  // namespace

/// A table or a matrix of which blocks of rows are read one after another.
struct Scorer::Stream {
  std::string file;
  TableSchema schema;
  std::unique_ptr<ByteReader> bytes;
  std::unique_ptr<TableReader> table;  ///< null for a matrix
  std::unique_ptr<MatrixReader> matrix;
  TableBlock block;
  bool any = false;  ///< at least one block was read

  bool next() { return table != nullptr ? table->next(block) : matrix->next(block); }
};

Scorer::Scorer(const ReleasedModel& model, const std::string& model_name,
               const ScoringRequest& request, const Backend& backend, Reporter& reporter)
    : model_(model),
      model_name_(model_name),
      backend_(backend),
      reporter_(reporter),
      features_(model.features),
      predictor_(backend, model.network, settings_for(request)) {
  predictor_.set_parameters(model.parameters);
  features_.cache = request.feature_cache;
  features_.threads = request.threads;
  DataRequest data = request.data;
  // If test rows are given as a table of their own, only that table is scored.
  const bool apart = !data.test_path.empty() && !is_named_dataset(data.dataset);
  const std::string scored = apart ? data.test_path : data.dataset;
  const bool table = is_table_path(scored) && model.inputs.schema;
  const bool matrix = !is_named_dataset(scored) && is_matrix(scored);
  if (table || matrix) {
    data.dataset = scored;
    if (apart) data.labels_path = data.test_labels_path;
    if (apart && !data.arrays.test_arrays.empty()) data.arrays.arrays = data.arrays.test_arrays;
  }
  if (!request.group_by.empty() && !table)
    throw InputError("--group-by: expected a table given by its path, found " + scored);
  if (table)
    open_table(data, request);
  else if (matrix)
    open_matrix(data, request);
  else
    load(std::move(data));
}

Scorer::~Scorer() = default;

void Scorer::open_table(const DataRequest& data, const ScoringRequest& request) {
  stream_ = std::make_unique<Stream>();
  stream_->schema = schema_for(model_, model_name_, data, reporter_);
  const TableSchema& schema = stream_->schema;
  const bool ids = request.ids && std::ranges::any_of(schema.columns, [](const Column& c) {
                     return std::holds_alternative<Id>(c.kind);
                   });
  if (is_text(schema) != (model_.coder != nullptr))
    throw InputError(model_name_ + ": expected " +
                     (model_.coder != nullptr ? "a schema of texts, found one without texts"
                                              : "a schema without texts, found one of texts"));
  name_ = schema.name.empty() ? set_name_of(data.dataset) : schema.name;
  stream_->bytes = open_input(data.dataset, data.progress, compression_of(schema));
  stream_->file = stream_->bytes->name();
  stream_->table = std::make_unique<TableReader>(*stream_->bytes, schema,
                                                 TableOptions{.malformed = data.malformed,
                                                              .labels = request.labels,
                                                              .scoring = true,
                                                              .ids = ids,
                                                              .group_by = request.group_by,
                                                              .coder = model_.coder.get()});
  has_ids_ = stream_->table->has_ids();
  warn_of_dropped(stream_->bytes->name(), stream_->table->dropped(), reporter_);
}

void Scorer::open_matrix(const DataRequest& data, const ScoringRequest& request) {
  name_ = set_name_of(data.dataset);
  stream_ = std::make_unique<Stream>();
  stream_->file = data.dataset;
  const std::optional<TargetBounds> target = model_.inputs.target();
  const bool as_given = features_.kind == Features::none;
  stream_->matrix = std::make_unique<MatrixReader>(MatrixFiles{
      .features = data.dataset,
      .labels = data.labels_path,
      .given = data.given ? &data.given->train : nullptr,
      .read_labels = request.labels,
      .classes = model_.network.classes,
      .malformed = data.malformed,
      .form = {.shape = parse_input_shape(data.arrays.input_shape, "--input-shape"),
               .shape_of_rows = as_given ? std::optional(model_.network.input) : std::nullopt,
               .channels_last = data.arrays.channels_last},
      .names = parse_array_names(data.arrays.arrays, "--arrays"),
      .target = target});
  const bool is_bytes = stream_->matrix->empty().is_bytes();
  if (is_bytes != model_.inputs.pixels.has_value())
    bad_input(data.dataset, "",
              (is_bytes ? "floating-point numbers" : "numbers of type uint8") +
                  (", as " + model_name_ + " was trained on"),
              is_bytes ? "numbers of type uint8" : "floating-point numbers");
}

void Scorer::load(DataRequest data) {
  data.coder = model_.coder;
  const bool named = is_named_dataset(data.dataset);
  if (!named && is_folder(data.dataset)) data.classes = model_.network.classes;
  TestData test = load_test_data(data);
  name_ = test.name;
  if (test.examples.size() == 0) bad_input(name_, "", "at least one example", "none");
  if (const std::string_view shipped = named ? shipped_schema(data.dataset) : std::string_view();
      model_.inputs.schema && !shipped.empty()) {
    const std::string source = data.dataset + ".toml";
    (void)matched_schema(*model_.inputs.schema, parse_schema(shipped, source), source, model_name_);
  }
  if (model_.inputs.pixels) {
    test.examples.scale = model_.inputs.pixels->scale;
    test.examples.shift = model_.inputs.pixels->shift;
  }
  whole_ = std::move(test.examples);
}

void Scorer::fit_to_network(Dataset& examples) {
  if (examples.is_text() != (model_.coder != nullptr))
    throw InputError(name_ + ": expected " + (model_.coder != nullptr ? "texts" : "no texts") +
                     ", as " + model_name_ + " was trained on, found " +
                     (model_.coder != nullptr ? "none" : "texts"));
  make_features(examples, features_, backend_, reporter_);
  apply_release(examples, features_, model_.feature_release, name_);
  if (examples.shape != model_.network.input || examples.classes != model_.network.classes)
    throw InputError(fmt::format(
        "{}: expected examples of shape {} in {} classes, as {} was trained on, found {} in {}",
        name_, shape_text(model_.network.input), model_.network.classes, model_name_,
        shape_text(examples.shape), examples.classes));
}

bool Scorer::next(ScoredBlock& block) {
  block.predictions.loss = model_.network.spec.loss;
  block.predictions.outputs = model_.network.outputs;
  block.predictions.huber = model_.network.spec.huber;
  if (whole_) {
    fit_to_network(*whole_);
    block.first_row = 0;
    block.predictions.logits = predictor_.logits(*whole_);
    block.predictions.labels = std::move(whole_->labels);
    block.predictions.targets = copy_of(whole_->targets);
    whole_.reset();
    return true;
  }
  if (stream_ == nullptr) return false;
  if (!stream_->next()) {
    if (!stream_->any) bad_input(stream_->file, "", "at least one row", "none");
    return false;
  }
  stream_->any = true;
  TableBlock& read = stream_->block;
  if (model_.inputs.pixels) {
    read.examples.scale = model_.inputs.pixels->scale;
    read.examples.shift = model_.inputs.pixels->shift;
  }
  // The block's memory is reused, so features are applied to a copy.
  const bool as_read = features_.kind == Features::none && features_.normalise == Normalise::none;
  Dataset changed;
  if (!as_read) changed = read.examples;
  Dataset& examples = as_read ? read.examples : changed;
  fit_to_network(examples);
  block.first_row = read.first_row;
  block.predictions.logits = predictor_.logits(examples);
  block.predictions.labels = read.examples.labels;
  block.predictions.targets = copy_of(read.examples.targets);
  std::swap(block.ids, read.ids);
  std::swap(block.groups, read.groups);
  return true;
}

}  // namespace cudp
