import{createRequire as createRequireOfNode}from'node:module';const require=createRequireOfNode(import.meta.url);
