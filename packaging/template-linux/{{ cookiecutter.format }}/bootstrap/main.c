/* Starts Python over the app's own folders, wherever they lie, as Briefcase's launcher does on a Mac:
   isolated, without writing bytecode, with this executable as the interpreter's. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STDLIB "/usr/lib/python{{ cookiecutter.python_version|py_tag }}"
#define INSIDE "/lib/{{ cookiecutter.app_name }}/"

static void must(PyStatus status)
{
    if (PyStatus_Exception(status))
        Py_ExitStatusException(status);
}

static void search(PyConfig *config, const char *root, const char *folder)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s%s", root, folder);
    wchar_t *wide = Py_DecodeLocale(path, NULL);
    must(wide ? PyWideStringList_Append(&config->module_search_paths, wide) : PyStatus_NoMemory());
    PyMem_RawFree(wide);
}

/* Packages may bring .pth files, which only `site` reads. Returns 0 if that went well. */
static int add_packages(const char *root)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s%s", root, INSIDE "app_packages");
    PyObject *site = PyImport_ImportModule("site");
    PyObject *done = site ? PyObject_CallMethod(site, "addsitedir", "s", path) : NULL;
    if (!done)
        PyErr_Print();
    Py_XDECREF(site);
    Py_XDECREF(done);
    return done ? 0 : 1;
}

int main(int argc, char **argv)
{
    char own[PATH_MAX], above[PATH_MAX];
    if (!realpath("/proc/self/exe", own)) {
        perror("/proc/self/exe");
        return 1;
    }
    strcpy(above, own);
    const char *root = dirname(dirname(above));

    PyPreConfig before;
    PyPreConfig_InitIsolatedConfig(&before);
    before.utf8_mode = 1;
    before.configure_locale = 1;
    must(Py_PreInitialize(&before));

    PyConfig config;
    PyConfig_InitIsolatedConfig(&config);
    config.buffered_stdio = 0;
    config.write_bytecode = 0;
    config.site_import = 0;
    config.install_signal_handlers = 1;
    must(PyConfig_SetBytesString(&config, &config.executable, own));
    must(PyConfig_SetBytesString(&config, &config.run_module, "{{ cookiecutter.module_name }}"));
    must(PyConfig_SetBytesArgv(&config, argc, argv));
    must(PyConfig_Read(&config));
    config.module_search_paths_set = 1;
    search(&config, STDLIB, "");
    search(&config, STDLIB, "/lib-dynload");
    search(&config, root, INSIDE "app");
    must(Py_InitializeFromConfig(&config));
    PyConfig_Clear(&config);
    if (add_packages(root))
        return 1;
    return Py_RunMain();
}
