#include <cmath>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <nlohmann/json.hpp>

#include "runtime/base/error.hpp"
#include "runtime/cli/scoring.hpp"
#include "runtime/config/option.hpp"
#include "runtime/export/python.hpp"
#include "runtime/python/arrays.hpp"
#include "runtime/python/module.hpp"
#include "runtime/python/settings.hpp"
#include "runtime/results/evaluation_report.hpp"
#include "runtime/results/predictions.hpp"
#include "runtime/results/scorer.hpp"
#include "runtime/run/folder.hpp"

namespace nb = nanobind;

namespace cudp::python {
namespace {

/// Makes a NumPy array of this shape that owns `values`. Requires the GIL.
template <class T>
nb::object numpy_array(std::vector<T> values, std::vector<std::size_t> shape) {
  auto held = std::make_unique<std::vector<T>>(std::move(values));
  T* const data = held->data();
  const nb::capsule owner(held.release(),
                          [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T>(data, shape.size(), shape.data(), owner));
}

/// Outputs of a model for all n rows of a data set. K is the number of classes.
struct Outputs {
  std::vector<std::int64_t> classes;  ///< [n] predicted classes; empty for a target
  std::vector<float> probabilities;   ///< [n, K]; empty if the loss gives none
  std::vector<float> logits;          ///< [n, outputs]
  std::vector<double> values;         ///< [n] predicted targets; empty for classes
};

/// Returns the path of a released model's file. place: path of a run's folder, of its folder
/// release/, or of the file. Throws InputError if there is no model, or if the folder belongs to a
/// training that `cudp tune` started.
std::filesystem::path released_place(const std::string& place) {
  check_not_of_tuning(place);
  return find_released_model(place);
}

/// A released model, read from its file, for Python.
class PythonModel {
 public:
  explicit PythonModel(const std::string& place, const std::string& embedding)
      : name_(place),
        model_(read_released_model(released_place(place), {.file = embedding, .dir = "data"})) {}

  std::vector<std::string> class_names() const { return model_.inputs.classes(); }
  int classes() const { return model_.network.classes; }
  bool predicts_target() const { return has_target(model_.network.spec.loss); }
  bool gives_probabilities() const { return cudp::gives_probabilities(model_.network.spec.loss); }
  bool reads_table() const { return model_.inputs.schema.has_value(); }
  std::size_t parameters() const { return model_.network.parameter_count; }
  std::vector<int> input_shape() const {
    const Shape& s = model_.network.input;
    return {s.channels, s.height, s.width};
  }
  std::string model_name() const { return model_.network.spec.name; }
  /// Returns a description of the model's layers as JSON (description_of(),
  /// runtime/export/python.hpp).
  std::string description() const { return description_of(model_, name_); }

  /// Predicts for rows of arrays, or of a data set. data: a pair (X, None) of arrays, or None; in
  /// that case the settings `given` name the data set.
  nb::dict predict(const nb::dict& given, nb::handle data) const {
    const TrainConfig config = config_of(given, scoring_options(), "predict");
    const std::shared_ptr<const GivenArrays> arrays = arrays_of(data);
    Outputs out;
    {
      const nb::gil_scoped_release without_gil;
      out = outputs(config, arrays);
    }
    const std::size_t outputs = static_cast<std::size_t>(model_.network.outputs);
    const std::size_t n = out.logits.size() / outputs;
    nb::dict all;
    all["logits"] = numpy_array(std::move(out.logits), {n, outputs});
    if (predicts_target()) {
      all["values"] = numpy_array(std::move(out.values), {n});
      return all;
    }
    all["classes"] = numpy_array(std::move(out.classes), {n});
    if (gives_probabilities())
      all["probabilities"] = numpy_array(std::move(out.probabilities),
                                         {n, static_cast<std::size_t>(model_.network.classes)});
    return all;
  }

  /// Evaluates the model on rows with labels. Returns JSON, as `cudp eval --json` prints.
  std::string evaluate(const nb::dict& given, nb::handle data) const {
    const TrainConfig config = config_of(given, scoring_options(), "eval");
    const std::shared_ptr<const GivenArrays> arrays = arrays_of(data);
    const nb::gil_scoped_release without_gil;
    Evaluator evaluator(model_.network.spec.loss, model_.network.outputs,
                        model_.inputs.target().value_or(TargetBounds{}));
    score(config, arrays, true,
          [&](const ScoredBlock& block, const std::string&) { evaluator.add(block.predictions); });
    return to_json(evaluator.evaluation(), model_.inputs.classes())
        .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }

 private:
  std::shared_ptr<const GivenArrays> arrays_of(nb::handle data) const {
    if (data.is_none()) return nullptr;
    if (reads_table() || model_.coder != nullptr)
      throw InputError("X: expected the path of a table, since " + name_ +
                       " was trained on one, found an array");
    auto arrays = std::make_shared<GivenArrays>();
    arrays->train = labelled_arrays(data[0], data[1], "");
    return arrays;
  }

  template <class Take>
  void score(const TrainConfig& config, const std::shared_ptr<const GivenArrays>& arrays,
             bool labels, const Take& take) const {
    ScoringRequest request = scoring_request(config);
    request.labels = labels;
    request.data.given = arrays;
    if (arrays != nullptr) request.data.dataset = "X.npz";
    Reporter reporter(Reporter::Silent{});
    const Backend backend = choose_backend(config.device);
    Scorer scorer(model_, name_, request, backend, reporter);
    ScoredBlock block;
    while (scorer.next(block)) take(block, scorer.data_name());
  }

  Outputs outputs(const TrainConfig& config,
                  const std::shared_ptr<const GivenArrays>& arrays) const {
    Outputs out;
    const Loss loss = model_.network.spec.loss;
    const auto outputs = static_cast<std::size_t>(model_.network.outputs);
    const TargetBounds bounds = model_.inputs.target().value_or(TargetBounds{});
    std::vector<float> row(static_cast<std::size_t>(std::max(model_.network.classes, 1)));
    score(config, arrays, false, [&](const ScoredBlock& block, const std::string& data_name) {
      const std::vector<float>& logits = block.predictions.logits;
      for (std::size_t at = 0; at < logits.size(); at += outputs) {
        const std::span<const float> one(logits.data() + at, outputs);
        for (const float z : one)
          if (!std::isfinite(z))
            throw InputError(data_name + ", row " +
                             std::to_string(block.first_row + 1 + at / outputs) +
                             ": the model's output is not finite, because its training diverged");
        if (predicts_target()) {
          out.values.push_back(bounds.value(static_cast<double>(one[0])));
          continue;
        }
        out.classes.push_back(predicted_class(loss, one));
        if (!gives_probabilities()) continue;
        class_probabilities(loss, one, row);
        out.probabilities.insert(out.probabilities.end(), row.begin(), row.end());
      }
      out.logits.insert(out.logits.end(), logits.begin(), logits.end());
    });
    return out;
  }

  std::string name_;
  ReleasedModel model_;
};

}  // namespace

void bind_models(nb::module_& m) {
  nb::class_<PythonModel>(m, "Model")
      .def(nb::init<const std::string&, const std::string&>(),
           nb::call_guard<nb::gil_scoped_release>())
      .def_prop_ro("class_names", &PythonModel::class_names)
      .def_prop_ro("classes", &PythonModel::classes)
      .def_prop_ro("predicts_target", &PythonModel::predicts_target)
      .def_prop_ro("gives_probabilities", &PythonModel::gives_probabilities)
      .def_prop_ro("reads_table", &PythonModel::reads_table)
      .def_prop_ro("parameters", &PythonModel::parameters)
      .def_prop_ro("input_shape", &PythonModel::input_shape)
      .def_prop_ro("name", &PythonModel::model_name)
      .def("description", &PythonModel::description)
      .def("predict", &PythonModel::predict, nb::arg("settings"), nb::arg("data").none())
      .def("evaluate", &PythonModel::evaluate, nb::arg("settings"), nb::arg("data").none());
}

}  // namespace cudp::python
