#define PY_SSIZE_T_CLEAN
#include "executors/jail/python.hpp"

#include "executors/jail/checkpoint.hpp"
#include "executors/jail/sys.hpp"
#include "executors/worker_source.hpp"

#include <Python.h>  // first, as CPython asks

#include <iterator>

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

std::string take_python_error() {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  object keep_type{type}, keep_value{value}, keep_trace{trace};
  object text{value != nullptr ? PyObject_Str(value) : nullptr};
  auto* utf8 = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  PyErr_Clear();
  return utf8 != nullptr ? utf8 : "unknown Python error";
}

void must_python(bool ok, const std::string& what) {
  if (!ok)
    throw setup_error{what + ": " + take_python_error(), 0};
}

void must_start(const PyStatus& status) {
  if (PyStatus_Exception(status))
    throw setup_error{std::string{"start Python: "} + (status.err_msg ? status.err_msg : "failed"),
                      0};
}

void preinitialise() {
  PyPreConfig pre;
  PyPreConfig_InitIsolatedConfig(&pre);
  pre.utf8_mode = 1;
  must_start(Py_PreInitialize(&pre));
}

void initialise() {
  preinitialise();
  add_checkpoint_module();
  PyConfig config;
  PyConfig_InitIsolatedConfig(&config);
  config.install_signal_handlers = 0;
  config.write_bytecode = 0;
  // Sets and dicts of text iterate in the same order in each sandbox: a run can be replayed.
  config.use_hash_seed = 1;
  config.hash_seed = 0;
  auto status =
    PyConfig_SetBytesString(&config, &config.program_name, TROUPE_PYTHON_PREFIX "/bin/python3");
  if (!PyStatus_Exception(status))
    status = Py_InitializeFromConfig(&config);
  PyConfig_Clear(&config);
  must_start(status);
}

void import_module(const std::string& name) {
  object module{PyImport_ImportModule(name.c_str())};
  must_python(static_cast<bool>(module), "import " + name);
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

void call(const char* module_name, const char* function) {
  object module{PyImport_ImportModule(module_name)};
  must_python(static_cast<bool>(module), module_name);
  object done{PyObject_CallMethod(module.get(), function, nullptr)};
  must_python(static_cast<bool>(done), function);
}

}  // namespace

void start_python(const std::vector<std::string>& modules) {
  initialise();
  for (const auto& name : modules)
    import_module(name);
  load_worker_modules();
  call("troupe_worker", "warm_up");
  call("gc", "collect");
  call("gc", "freeze");  // a collection in a worker then copies none of the shared pages
}

std::string python_version() {
  std::string text = Py_GetVersion();
  return text.substr(0, text.find(' '));
}

int run_worker(unsigned frame_bytes) {
  PyOS_AfterFork_Child();
  object module{PyImport_ImportModule("troupe_worker")};
  object done{module ? PyObject_CallMethod(module.get(), "serve", "I", frame_bytes) : nullptr};
  if (done)
    return 0;
  PyErr_Print();
  return 70;  // EX_SOFTWARE
}

}  // namespace troupe::jail
