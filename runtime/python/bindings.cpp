#include <cstring>
#include <exception>
#include <string>

#include <nanobind/nanobind.h>

#include "runtime/base/build_info.hpp"
#include "runtime/base/error.hpp"
#include "runtime/python/module.hpp"

namespace nb = nanobind;

namespace cudp::python {
namespace {

/// Python's exception classes for cudp's errors, by exit code.
struct ErrorClasses {
  PyObject* failure = nullptr;
  PyObject* bad_input = nullptr;
  PyObject* over_budget = nullptr;
  PyObject* interrupted = nullptr;
};

PyObject* error_class(nb::module_& m, const char* name, const char* about,
                      const nb::object& bases) {
  const std::string full = std::string("cudp.") + name;
  PyObject* const made = PyErr_NewExceptionWithDoc(full.c_str(), about, bases.ptr(), nullptr);
  if (made == nullptr) nb::raise_python_error();
  m.attr(name) = nb::borrow(made);
  return made;
}

/// Returns the text of the error `e` in the words of Python, with keyword arguments in place of
/// flags.
nb::object text_of(const Error& e) {
  try {
    return nb::module_::import_("cudp._settings").attr("in_python")(e.what());
  } catch (const nb::python_error&) {  // a text that is not UTF-8, or the interpreter ends
  }
  return nb::steal(
      PyUnicode_DecodeUTF8(e.what(), static_cast<Py_ssize_t>(std::strlen(e.what())), "replace"));
}

/// Sets Python's current exception to the error `e`, as an object of the class that fits its exit
/// code.
void raise_as(const ErrorClasses& classes, const Error& e) {
  PyObject* type = classes.failure;
  if (e.code() == Exit::bad_input) type = classes.bad_input;
  if (e.code() == Exit::over_budget) type = classes.over_budget;
  if (e.code() == Exit::again) type = classes.interrupted;
  PyErr_SetObject(type, text_of(e).ptr());
}

void bind_errors(nb::module_& m) {
  static ErrorClasses classes;  // they live as long as the module
  classes.failure = error_class(m, "Error", "cudp failed: a file that cannot be written, say.",
                                nb::borrow(PyExc_RuntimeError));
  const nb::object failure = nb::borrow(classes.failure);
  classes.bad_input = error_class(m, "InputError", "An argument, or a file, is not as expected.",
                                  nb::make_tuple(failure, nb::borrow(PyExc_ValueError)));
  classes.over_budget = error_class(
      m, "BudgetError", "The privacy budget does not cover what was requested.", failure);
  classes.interrupted =
      error_class(m, "InterruptedRun",
                  "A run stopped at a checkpoint, because of Ctrl-C; the message says how it "
                  "resumes.",
                  nb::borrow(PyExc_KeyboardInterrupt));
  nb::register_exception_translator(
      [](const std::exception_ptr& raised, void*) {
        try {
          std::rethrow_exception(raised);
        } catch (const Error& e) {
          raise_as(classes, e);
        }
      },
      nullptr);
}

}  // namespace
}  // namespace cudp::python

NB_MODULE(_core, m) {
  m.attr("__version__") = cudp::build_info().version;
  cudp::python::bind_errors(m);
  cudp::python::bind_accounting(m);
  cudp::python::bind_budget(m);
  cudp::python::bind_training(m);
  cudp::python::bind_models(m);
  cudp::python::bind_tuning(m);
  cudp::python::bind_tables(m);
  cudp::python::bind_scaling(m);
}
