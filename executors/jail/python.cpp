#define PY_SSIZE_T_CLEAN
#include "executors/jail/python.hpp"

#include "executors/jail/checkpoint.hpp"
#include "executors/jail/own_state.hpp"
#include "executors/jail/sys.hpp"
#include "executors/worker_source.hpp"

#include <Python.h>  // first, as CPython asks

#include <iterator>

#include <signal.h>

namespace troupe::jail {
namespace {

/// An owned reference.
class object {
public:
  explicit object(PyObject* p) : p_{p} {}
  ~object() { Py_XDECREF(p_); }
  object(const object&) = delete;
  object& operator=(const object&) = delete;

  [[nodiscard]] PyObject* get() const noexcept { return p_; }
  [[nodiscard]] explicit operator bool() const noexcept { return p_ != nullptr; }

private:
  PyObject* p_;
};

std::string text_of(PyObject* text) {
  Py_ssize_t size = 0;
  auto* utf8 = text != nullptr ? PyUnicode_AsUTF8AndSize(text, &size) : nullptr;
  PyErr_Clear();
  return utf8 != nullptr ? std::string(utf8, static_cast<std::size_t>(size)) : std::string{};
}

std::string take_python_error() {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  object keep_type{type}, keep_value{value}, keep_trace{trace};
  object text{value != nullptr ? PyObject_Str(value) : nullptr};
  auto what = text_of(text.get());
  return what.empty() ? "unknown Python error" : what;
}

void must_python(bool ok, const std::string& what) {
  if (!ok)
    throw setup_error{what + ": " + take_python_error(), 0};
}

void import_module(std::string name) {
  auto optional = name.ends_with(may_be_missing);
  if (optional)
    name.pop_back();
  object module{PyImport_ImportModule(name.c_str())};
  if (module)
    return;
  if (PyErr_ExceptionMatches(PyExc_ModuleNotFoundError) == 0)
    must_python(false, "import " + name);
  auto why = take_python_error();
  if (!optional)
    throw setup_error{"import " + name + ": " + why
                        + " (install it for this Python, or take it out of preload)",
                      0};
}

void load_worker_modules() {
  for (const auto& m : worker_modules) {
    auto file = "<" + std::string{m.name} + ">";
    object code{Py_CompileString(m.source, file.c_str(), Py_file_input)};
    must_python(static_cast<bool>(code), "compile " + std::string{m.name});
    object module{PyImport_ExecCodeModule(m.name, code.get())};
    must_python(static_cast<bool>(module), "run " + std::string{m.name});
  }
}

/// The worker sets those that it needs. An ignored SIGCHLD would make each subprocess look like a
/// success.
void reset_signals() {
  for (int n = 1; n < NSIG; ++n)
    ::signal(n, SIG_DFL);
}

void call(const char* module_name, const char* function) {
  object module{PyImport_ImportModule(module_name)};
  must_python(static_cast<bool>(module), module_name);
  object done{PyObject_CallMethod(module.get(), function, nullptr)};
  must_python(static_cast<bool>(done), function);
}

/// load(modules) -> int: 0, or the exit status once the runtime has been told why not.
PyObject* load(PyObject*, PyObject* args) {
  PyObject* names = nullptr;
  if (PyArg_ParseTuple(args, "O", &names) == 0)
    return nullptr;
  std::vector<std::string> modules;
  for (Py_ssize_t i = 0; i < PyList_Size(names); ++i)
    modules.push_back(text_of(PyList_GetItem(names, i)));
  return PyLong_FromLong(prepare_zygote(modules));
}

/// serve(mode) -> int: serves the runtime; the exit status.
PyObject* serve(PyObject*, PyObject* args) {
  const char* mode = nullptr;
  if (PyArg_ParseTuple(args, "s", &mode) == 0)
    return nullptr;
  auto as_root = std::string{mode} == mode_text(privilege::root);
  return PyLong_FromLong(run_zygote(as_root ? privilege::root : privilege::rootless));
}

PyMethodDef methods[] = {{"load", load, METH_VARARGS, nullptr},
                         {"serve", serve, METH_VARARGS, nullptr},
                         {nullptr, nullptr, 0, nullptr}};

PyModuleDef module_def = {
  PyModuleDef_HEAD_INIT, "troupe_zygote", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

void load_worker(const std::vector<std::string>& modules) {
  for (const auto& name : modules)
    import_module(name);
  must_python(add_checkpoint_module(), "add a Python module");
  load_worker_modules();
  reset_signals();
  call("troupe_worker", "prepare_zygote");
  PyOS_AfterFork_Child();  // as each worker will: what it looks up and makes anew is then there
  call("gc", "collect");
  call("gc", "freeze");  // a collection in a worker then copies none of the shared pages
}

std::string python_version() {
  std::string text = Py_GetVersion();
  return text.substr(0, text.find(' '));
}

int run_worker(unsigned frame_bytes) {
  remember_descriptors(0, saved_fd + 1);
  PyOS_AfterFork_Child();
  object name{PyUnicode_FromString("troupe_worker")};
  object module{PyImport_GetModule(name.get())};  // an import would find it too, by a longer way
  object done{module ? PyObject_CallMethod(module.get(), "serve", "I", frame_bytes) : nullptr};
  if (done)
    return 0;
  PyErr_Print();
  return 70;  // EX_SOFTWARE
}

}  // namespace troupe::jail

PyMODINIT_FUNC PyInit_troupe_zygote() {
  return PyModule_Create(&troupe::jail::module_def);
}
